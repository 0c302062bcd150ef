"""What we and runners on other machines hand each other: files below one folder, one subfolder an attempt.

    ATTEMPT/bundle      the shard and its cases
    ATTEMPT/alive       written by each signed request of the runner; its time is the last sign of life
    ATTEMPT/000017      the 17th upload of events, JSON lines
    ATTEMPT/end         the number of uploads, once the runner has sent all

An attempt is one try of one runner at a part of a shard; its name is random and used once. The folder is
shared by the web requests, which write, and the campaign, which reads; so several processes may serve it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from pathlib import Path

from bot.errors import RunnerError, UsageError
from bot.runners.event_lines import MalformedLineError, parse_line
from bot.runners.protocol import Event
from fuzzing.file_trees import remove_tree

#: Most bytes of one upload: fifty outcomes of the largest size that is allowed are fewer.
MAX_UPLOAD_BYTES = 64 << 20
_ATTEMPT = re.compile(r"[0-9a-f]{32}")
#: A shard of 4,000 cases is sent in hundreds of uploads; no runner needs more of them.
MAX_UPLOADS = 1_000_000


#: Twelve times the longest time of a job (`timeout-minutes` in workflows/gpu-runner.yml).
MAX_AGE_S = 86_400.0


class WithdrawnError(UsageError):
    """The attempt is over or was never begun: the runner stops."""


def sign(key: bytes, attempt: str, action: str, number: int, body: bytes) -> str:
    """The signature of a request: HMAC-SHA256 over what it does and its bytes, in hex.

    It names attempt, action and number, so that no request can be used for anything else, or twice.
    """
    digest = hashlib.sha256(body).hexdigest()
    message = f"assay-runner-1\n{attempt}\n{action}\n{number}\n{digest}"
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def is_signed(key: bytes, signature: str, attempt: str, action: str, number: int, body: bytes) -> bool:
    """Whether the signature is that of the request, compared in constant time."""
    expected = sign(key, attempt, action, number, body)
    return bool(key) and hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


class Exchange:
    """The folder of all attempts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, bundle: bytes) -> str:
        """Offers a bundle; returns the name of the attempt."""
        self._sweep()
        attempt = secrets.token_hex(16)
        temporary = self._folder / f".{attempt}"
        temporary.mkdir(parents=True)
        (temporary / "bundle").write_bytes(bundle)
        temporary.rename(self._folder / attempt)
        return attempt

    def close(self, attempt: str) -> None:
        """Withdraws an attempt: its runner is told to stop, and nothing more counts."""
        remove_tree(self._find(attempt))

    def bundle(self, attempt: str) -> bytes:
        """For the runner. Raises WithdrawnError."""
        try:
            return (self._find(attempt) / "bundle").read_bytes()
        except FileNotFoundError:
            raise WithdrawnError(f"there is no attempt {attempt}") from None

    def show_life(self, attempt: str) -> None:
        """Renews the lease. Raises WithdrawnError."""
        folder = self._find(attempt)
        if not folder.is_dir():
            raise WithdrawnError(f"there is no attempt {attempt}")
        (folder / "alive").touch()

    def put(self, attempt: str, number: int, body: bytes, *, last: bool) -> None:
        """Keeps an upload. The same one again is no error, as an answer may be lost.

        Raises WithdrawnError, and UsageError for another upload of that number or one out of order.
        """
        self.show_life(attempt)
        folder = self._find(attempt)
        file = folder / f"{number:06d}"
        if not 0 <= number < MAX_UPLOADS or (number and not (folder / f"{number - 1:06d}").exists()):
            raise UsageError(f"upload {number} is out of order")
        if file.exists():
            if file.read_bytes() != body:
                raise UsageError(f"upload {number} was another one")
            return
        if (folder / "end").exists():
            raise UsageError("the attempt has ended")
        temporary = folder / f".{secrets.token_hex(8)}"
        temporary.write_bytes(body)
        try:
            file.hardlink_to(temporary)  # fails if another request was first
        except FileExistsError:
            raise UsageError(f"upload {number} is being sent twice") from None
        finally:
            temporary.unlink()
        if last:
            (folder / "end").write_text(str(number + 1))

    def silence(self, attempt: str) -> float | None:
        """Seconds since the runner's last sign of life; None if there was none."""
        try:
            return max(0.0, time.time() - (self._find(attempt) / "alive").stat().st_mtime)
        except FileNotFoundError:
            return None

    def take(self, attempt: str, number: int) -> list[Event] | None:
        """The events of an upload; None if it is not there yet. Raises RunnerError if they are none."""
        try:
            body = (self._find(attempt) / f"{number:06d}").read_bytes()
        except FileNotFoundError:
            return None
        try:
            return [parse_line(line) for line in body.splitlines()]
        except MalformedLineError as error:
            raise RunnerError(f"a runner sent {error}") from None

    def has_ended(self, attempt: str, number: int) -> bool:
        """Whether the runner has sent all of its uploads, `number` of them."""
        try:
            return (self._find(attempt) / "end").read_text() == str(number)
        except FileNotFoundError:
            return False

    def _sweep(self) -> None:
        """Removes attempts of processes that were killed."""
        oldest = time.time() - MAX_AGE_S
        for folder in self._folder.glob("*"):
            try:
                if folder.stat().st_mtime < oldest:
                    remove_tree(folder)
            except FileNotFoundError:
                continue  # another process was first

    def _find(self, attempt: str) -> Path:
        if not _ATTEMPT.fullmatch(attempt):
            raise WithdrawnError("this is not the name of an attempt")
        return self._folder / attempt
