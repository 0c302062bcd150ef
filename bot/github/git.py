"""Runs git in isolation: no hooks, no prompts, only our configuration, few protocols."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from bot import processes
from bot.errors import InfrastructureError, RefusalError, UsageError

FETCH_TIMEOUT_S = 1800.0  # the history of a large compiler over a slow line
LOCAL_TIMEOUT_S = 120.0

#: Disables what fetches do not need from this machine and repositories must not bring.
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.autoDetach": "false",  # ends before the mirror is unlocked
    "http.lowSpeedLimit": "1000",  # bytes per second during http.lowSpeedTime seconds, else give up
    "http.lowSpeedTime": "60",
    "init.defaultBranch": "main",
    "transfer.credentialsInUrl": "die",
}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_OFFLINE = "none"  # not a protocol: git cannot use the network

_DAMAGED = re.compile(r"corrupt|loose object|bad object|unable to read|not a git repository:", re.IGNORECASE)
_GONE = re.compile(
    r"repository .*not found|does not appear to be a git repository|authentication failed|access denied"
    r"|could not read username|terminal prompts disabled|returned error: 40[134]|http 40[134]"
    r"|permission .*denied|project .*not found|not exported",
    re.IGNORECASE,
)
#: The server lacks the commit, or does not serve commits outside of branches.
_NO_COMMIT = re.compile(
    r"not our ref|unadvertised object|couldn't find remote ref|no such remote ref|unable to find remote",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|failed to connect|connection (refused|reset|timed out|closed)"
    r"|couldn't connect|operation timed out|too slow|early eof|unexpected disconnect|gnutls|ssl|tls"
    r"|returned error: (429|5\d\d)|http (429|5\d\d)|network is unreachable|remote end hung up"
    r"|no space left|disk quota",
    re.IGNORECASE,
)


#: Returns a token for a repository, None for none; called each time, because tokens expire.
TokenFor = Callable[[str], str | None]


class NoSuchCommitError(RefusalError):
    """The server does not serve this commit."""


class CorruptMirrorError(InfrastructureError):
    """git cannot use a mirror; rebuilding it may help."""


def is_protected(address: SplitResult) -> bool:
    """Whether nobody on the way can change what is read there: code of it runs here."""
    here = address.scheme == "http" and address.hostname in _LOOPBACK
    return here or address.scheme in ("https", "file")


class Git:
    """Runs git for one server. Tokens are sent to that server only, and never appear on a command line.

    token  one for all repositories, or a function of the repository
    """

    def __init__(self, url: str, token: str | TokenFor | None) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if not is_protected(parts):
            raise UsageError(
                f"cannot clone from {self.url!r}; ASSAY_GIT_URL must be an https:// or file:// address"
            )
        if parts.username or parts.password:
            raise UsageError("ASSAY_GIT_URL must hold no user name or password; set ASSAY_GITHUB_TOKEN")
        self._scheme = parts.scheme
        self._token = token if parts.scheme != "file" else None

    def remote(self, target: str, *arguments: str, cwd: Path) -> bytes:
        """Runs a command that contacts the server about `target`; returns its output.

        Raises RefusalError if the repository is gone or inaccessible, NoSuchCommitError if the server does
        not serve the commit, InfrastructureError for network failures, else CorruptMirrorError.
        """
        try:
            done = self._run(arguments, cwd, FETCH_TIMEOUT_S, self._online(target), kill_with_parent=True)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"fetching {target} from {self.url} did not end within {FETCH_TIMEOUT_S:g} s; "
                "check the network"
            ) from None
        if done.returncode:
            raise self._classify_error(target, done.stderr)
        return done.stdout

    def local(self, *arguments: str, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Runs an offline command, whatever its exit status."""
        try:
            return self._run(arguments, cwd, LOCAL_TIMEOUT_S, {"GIT_ALLOW_PROTOCOL": _OFFLINE}, stdin=stdin)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"git {arguments[0]} in {cwd} did not end within {LOCAL_TIMEOUT_S:g} s; "
                "is the disk overloaded?"
            ) from None

    def _run(
        self,
        arguments: tuple[str, ...],
        cwd: Path,
        timeout: float,
        extra: Mapping[str, str],
        *,
        stdin: bytes = b"",
        kill_with_parent: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        env = processes.filtered_environment(
            "PATH", "TMPDIR", *processes.NETWORK_VARIABLES, extra=base_environment() | dict(extra)
        )
        try:
            return processes.run(
                ["git", *arguments],
                env=env,
                cwd=cwd,
                timeout=timeout,
                stdin=stdin,
                kill_with_parent=kill_with_parent,
            )
        except OSError as error:
            raise InfrastructureError(
                f"cannot start git: {error}; install it, for instance with: apt install git"
            ) from None

    def _online(self, target: str) -> dict[str, str]:
        settings = dict(_SETTINGS)
        token = self._token(target) if callable(self._token) else self._token
        if token:
            credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            settings[f"http.{self.url}/.extraHeader"] = f"Authorization: Basic {credentials}"
        return _configuration(settings) | {"GIT_ALLOW_PROTOCOL": self._scheme}

    def _classify_error(self, target: str, stderr: bytes) -> Exception:
        text = processes.tail(stderr)
        messages = [line for line in text.splitlines() if line.startswith(("fatal:", "error:", "remote:"))]
        output = "; ".join(messages[:3])[:600] or text[:600] or "nothing"
        if _DAMAGED.search(text):
            return CorruptMirrorError(f"git cannot work with the mirror of {target}: {output}")
        if _NO_COMMIT.search(text):
            return NoSuchCommitError(f"{target}: {output}")
        if _GONE.search(text):
            return RefusalError(
                f"{target} cannot be read from {self.url}: it is gone or private, or Assay is not installed "
                f"there. git printed: {output}"
            )
        if _NETWORK.search(text):
            return InfrastructureError(
                f"{target} cannot be fetched from {self.url}; check the network, the proxies and the disk. "
                f"git printed: {output}"
            )
        return CorruptMirrorError(f"git failed on {target}: {output}")


def base_environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of git: only `_SETTINGS` and `settings` as configuration, no prompts."""
    return {
        "LC_ALL": "C",  # errors are classified by their text
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_NO_REPLACE_OBJECTS": "1",
        **_configuration(_SETTINGS | dict(settings or {})),
    }


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Git settings as environment variables, which other users of the machine cannot read."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env
