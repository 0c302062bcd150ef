"""The parts of a service process: lock, database, work, inbox writer.

They are started in this order and stopped in reverse.
"""

from __future__ import annotations

import gc
import stat
from contextlib import ExitStack
from pathlib import Path

from bot.background import Work
from bot.data_lock import CORPUS_LOCK, DataLock
from bot.errors import InfrastructureError
from bot.metrics import Metrics
from bot.settings import Settings
from bot.store import Database
from bot.webhooks.inbox_writer import InboxWriter


class Service:
    """Opens and closes all parts; `problems` lists failures."""

    def __init__(self, settings: Settings, work: Work) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.database: Database | None = None
        self.writer: InboxWriter | None = None
        self._work = work
        self._open: ExitStack | None = None

    def open(self) -> None:
        """Starts everything; no effect if open.

        Raises InfrastructureError if another service holds the data folder or another user owns it, or if the
        database fails.
        """
        if self._open is not None:
            return
        with ExitStack() as stack:
            _make_private(self.settings.data_dir)
            if self.settings.database_url.startswith("sqlite:"):
                lock = DataLock(self.settings.data_dir)
                lock.acquire()
                stack.callback(lock.release)
            corpus_lock = DataLock(self.settings.data_dir, CORPUS_LOCK, "`assay corpus prune`", shared=True)
            corpus_lock.acquire()
            stack.callback(corpus_lock.release)
            database = Database(self.settings.database_url)
            stack.callback(database.close)
            database.migrate()
            self.metrics.watch(database)
            self._work.start(self.settings, database, self.metrics)
            stack.callback(self._work.stop)
            writer = InboxWriter(database, self._work.wake)
            writer.start()
            stack.callback(writer.stop)
            self.database, self.writer = database, writer
            # Imported objects are never freed; collecting them would cost 100 ms each time.
            gc.collect()
            gc.freeze()
            self._open = stack.pop_all()

    def close(self) -> None:
        """Stops everything, newest first; no effect if closed."""
        if self._open is not None:
            self._open.close()
            self._open = None
            self.database = self.writer = None

    def problems(self) -> dict[str, str]:
        """Part → failure; empty if all parts work."""
        database, writer = self.database, self.writer
        if database is None or writer is None:
            return {"service": "it is not started"}
        found = self._work.problems()
        if writer.problem:
            found["inbox-writer"] = writer.problem
        try:
            if not database.is_migrated():
                found["database"] = "its tables are not those of this version; start this version once"
        except InfrastructureError as error:
            found["database"] = str(error)
        return found


def _make_private(folder: Path) -> None:
    """Closes the data folder to other users: it holds what private repositories contain."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=stat.S_IRWXU)
        if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            folder.chmod(stat.S_IRWXU)
    except OSError as error:
        raise InfrastructureError(
            f"cannot make {folder} private: {error.strerror}; check ASSAY_DATA_DIR and who owns it"
        ) from error
