"""Cache of the cases made from ONNX model files, in the data folder.

    {data}/models/lock              held while sets are added or removed
    {data}/models/ab12…/used        path of the models; its modification time is when the set was last used
    {data}/models/ab12…/NAME/…      the corpus

A set is named by its cases, so changed models make a new set. A command holds a shared lock on `used` until
it ends. Each command removes the sets that are not locked and are left over from killed commands, unused for
30 days, or replaced by a newer set of the same path a day ago.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import InfrastructureError
from bot.file_lock import file_lock
from bot.terminal import echo
from fuzzing.file_trees import discard_tree

IDLE_DAYS, REPLACED_DAYS = 30, 1
_DAY_S = 86400.0
_USED, _NEW, _REMOVED = "used", ".new-", ".gone-"


class ModelCache:
    """The sets of a data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir.absolute() / "models"

    @contextmanager
    def new_set(self, origin: Path) -> Iterator[Path]:
        """A folder to build a set in, removed afterwards unless `store` moved it.

        origin  the file or folder that the models are read from
        """
        with self._locked():
            folder = self._root / f"{_NEW}{secrets.token_hex(8)}"
            descriptor = _open_held(folder, str(origin.resolve()))
        try:
            yield folder
        finally:
            os.close(descriptor)
            discard_tree(folder)

    @contextmanager
    def store(self, folder: Path, cases: Iterable[str]) -> Iterator[Path]:
        """Moves `folder` to the set of these cases unless that exists; locks the set meanwhile."""
        origin = (folder / _USED).read_text(encoding="utf-8", errors="surrogateescape")
        words = "\n".join([origin, *sorted(cases)])
        place = self._root / hashlib.sha256(words.encode(errors="surrogateescape")).hexdigest()[:16]
        with self._locked():
            if not place.exists():
                folder.rename(place)
            descriptor = _open_held(place, origin)
            removed = self._evict()
        try:
            _delete(removed)
            yield place
        finally:
            os.close(descriptor)

    @contextmanager
    def hold(self, corpus: Path) -> Iterator[None]:
        """Locks the set that `corpus` belongs to, if any."""
        folder = corpus.absolute().parent
        if folder.parent != self._root or not (folder / _USED).exists():
            yield
            return
        with self._locked():
            descriptor = _open_held(folder, "")
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with file_lock(self._root / "lock"):
                yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # `bot.cli.exits` handles a full disk
            raise InfrastructureError(
                f"cannot write to {error.filename}: {error.strerror}; check ASSAY_DATA_DIR and permissions"
            ) from error

    def _evict(self) -> list[Path]:
        """Detaches unused sets; returns the folders to delete."""
        folders = [folder for folder in self._root.iterdir() if folder.is_dir()]
        left = [folder for folder in folders if folder.name.startswith((_NEW, _REMOVED))]
        sets = {folder: _read_origin(folder) for folder in folders if folder not in left}
        newest: dict[str, float] = {}
        for origin, used in sets.values():
            newest[origin] = max(used, newest.get(origin, 0.0))
        removed = [self._detach(folder) for folder in left]
        for folder, (origin, used) in sets.items():
            days = REPLACED_DAYS if origin and newest[origin] > used else IDLE_DAYS
            if time.time() - used > days * _DAY_S and (detached := self._detach(folder)):
                removed.append(detached)
                if days == IDLE_DAYS:
                    echo(f"removed the cases of {origin}, not used for {days} days", err=True)
        return [folder for folder in removed if folder]

    def _detach(self, folder: Path) -> Path | None:
        """Renames a set out of the way; None if it is locked."""
        detached = self._root / f"{_REMOVED}{secrets.token_hex(8)}"
        try:
            with open(folder / _USED, "ab") as used:
                fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return folder.rename(detached)
        except FileNotFoundError:  # another command is removing it, or was killed over that
            return folder.rename(detached) if folder.exists() else None
        except BlockingIOError:
            return None


def _open_held(folder: Path, origin: str) -> int:
    """An open descriptor that locks a set, which counts as used now."""
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder / _USED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # never blocks: exclusive locks are tried without waiting
    if not os.fstat(descriptor).st_size:
        os.write(descriptor, origin.encode(errors="surrogateescape"))
    os.utime(descriptor)
    return descriptor


def _read_origin(folder: Path) -> tuple[str, float]:
    """The path a set was made from, and when it was last used (now, if unknown)."""
    used = folder / _USED
    if not used.exists():
        used.touch()
    return used.read_text(encoding="utf-8", errors="surrogateescape"), used.stat().st_mtime


def _delete(folders: Iterable[Path]) -> None:
    for folder in folders:
        discard_tree(folder)
