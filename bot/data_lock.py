"""One process per data folder, or per part of it; the kernel releases the lock if its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from typing import IO

from bot.errors import InfrastructureError
from bot.store import now

#: Part of a data folder that services share, as those on one PostgreSQL database do: nobody removes cases.
CORPUS_LOCK = "corpus"


class DataLock:
    """A lock on `data_dir`, or on the part `name` of it; the file `NAME.lock` names the holder.

    owner_label  what the holder is, for error messages
    shared       several processes may hold it so, and none otherwise meanwhile; none of them is named
    """

    def __init__(
        self, data_dir: Path, name: str = "assay", owner_label: str = "Assay service", shared: bool = False
    ) -> None:
        self.path = data_dir / f"{name}.lock"
        self._owner_label, self._shared = owner_label, shared
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Raises InfrastructureError if another process holds it, or the file cannot be created."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 - it is held as long as the lock
        except OSError as error:
            raise InfrastructureError(
                f"cannot open {self.path}: {error.strerror}; check ASSAY_DATA_DIR and its permissions"
            ) from error
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe_holder(file)
            file.close()
            raise InfrastructureError(
                f"another {self._owner_label} works on {self.path.parent}: {holder}; "
                "wait for its end or stop it, or give this one a folder of its own with ASSAY_DATA_DIR"
            ) from None
        if not self._shared:
            file.truncate(0)
            json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": now().isoformat()}, file)
            file.flush()
        self._file = file

    def release(self) -> None:
        """Releases the lock; the empty file stays."""
        if self._file is not None:
            if not self._shared:
                self._file.truncate(0)
            self._file.close()
            self._file = None


def _describe_holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        holder = json.load(file)
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "unknown process"  # it is just starting
