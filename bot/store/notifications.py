"""Wakes the workers of this process when another one has work for them: PostgreSQL's LISTEN and NOTIFY.

Workers look for work at intervals anyway, so a notification that is lost costs seconds, never work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError

from bot.store.database import CHANNEL, Database

#: Seconds between checks whether to stop, and between attempts to connect again.
POLL_S, RECONNECT_S = 1.0, 5.0

log = structlog.get_logger(__name__)


class NotificationListener:
    """A thread that calls `wake[name]` for each notification `name`; does nothing on SQLite.

    Uses one connection of its own, outside of the pool's turns.
    """

    def __init__(self, database: Database, wake: Mapping[str, Callable[[], None]]) -> None:
        self._database, self._wake = database, wake
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)

    def start(self) -> None:
        """Starts the thread if the database has notifications."""
        if not self._database.is_sqlite:
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread within POLL_S."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        import psycopg

        while not self._stop.is_set():
            try:
                self._listen()
            except (psycopg.Error, DBAPIError) as error:
                log.warning("notifications.disconnected", reason=str(error), retry_in_s=RECONNECT_S)
                self._stop.wait(RECONNECT_S)

    def _listen(self) -> None:
        pooled = self._database.engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        try:
            connection.autocommit = True
            connection.execute(f"listen {CHANNEL}")
            for wake in self._wake.values():  # what was notified before it listened
                wake()
            while not self._stop.is_set():
                for notification in connection.notifies(timeout=POLL_S):
                    if notification.payload in self._wake:
                        self._wake[notification.payload]()
                    if self._stop.is_set():
                        break
        finally:
            connection.close()
