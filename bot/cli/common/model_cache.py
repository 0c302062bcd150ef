"""Cases made of ONNX models that somebody has as files: kept in the data folder while they are of use.

    {data}/models/lock              held while sets come and go
    {data}/models/ab12…/used        what the set was made of; when it changed is when the set was last used
    {data}/models/ab12…/NAME/…      the corpus

A set is named by its cases, so models that changed make another. Whoever uses one holds a shared lock on
`used` until its command ends, however it ends; the next command of anybody removes what nobody holds: sets
that were not used for 30 days, those that a newer one of the same path replaced a day ago, and what killed
commands left.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bot.errors import InfrastructureError
from bot.file_lock import file_lock

IDLE_DAYS, REPLACED_DAYS = 30, 1
_DAY_S = 86400.0
_USED, _NEW, _REMOVED = "used", ".new-", ".gone-"


class ModelCache:
    """The sets of a data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir.absolute() / "models"

    @contextmanager
    def new_set(self, origin: Path) -> Iterator[Path]:
        """A folder for a set to be made in; what is still there afterwards is removed.

        origin  the file or folder that the models are read from
        """
        with self._locked():
            folder = self._root / f"{_NEW}{secrets.token_hex(8)}"
            descriptor = _open_held(folder, str(origin.resolve()))
        try:
            yield folder
        finally:
            os.close(descriptor)
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def store(self, folder: Path, cases: Iterable[str]) -> Iterator[Path]:
        """The set of these cases, which `folder` becomes unless it is there; nobody removes it meanwhile."""
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
        """Where `corpus` is that of a set, nobody removes it meanwhile."""
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
                raise  # told for all commands alike
            raise InfrastructureError(
                f"cannot write to {error.filename}: {error.strerror}; check ASSAY_DATA_DIR and its rights"
            ) from error

    def _evict(self) -> list[Path]:
        """Takes what is of no more use off the shelf: folders to be removed."""
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
                    click.echo(f"removed the cases of {origin}, not used for {days} days", err=True)
        return [folder for folder in removed if folder]

    def _detach(self, folder: Path) -> Path | None:
        """Where a set lies now that nobody finds it any more; None if somebody holds it."""
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
    """A descriptor that holds a set for as long as it is open; the set is as good as new."""
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder / _USED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # at once: others want it for themselves only while they are alone
    if not os.fstat(descriptor).st_size:
        os.write(descriptor, origin.encode(errors="surrogateescape"))
    os.utime(descriptor)
    return descriptor


def _read_origin(folder: Path) -> tuple[str, float]:
    """What a set was made of, and when it was last used; what has no note of it counts from now on."""
    used = folder / _USED
    if not used.exists():
        used.touch()
    return used.read_text(encoding="utf-8", errors="surrogateescape"), used.stat().st_mtime


def _delete(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
