"""Keeps all processes together within GitHub's rate limits.

Usage and pauses are rows (`bot.store.rate_usage`), so every process obeys them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from bot.github.limits import WRITE_GAP_S, ThrottledError
from bot.store import rate_usage, response_cache
from bot.store.database import Database, now

#: Waits up to this are slept here; longer ones are raised, so that the caller can do other work.
MAX_WAIT = timedelta(seconds=5)
#: Larger responses are not cached: a diff of megabytes is seldom requested twice.
MAX_CACHED_BYTES = 1 << 18
SEARCH = "/search"  # suffix of an account under which its searches are counted


class RateLimiter:
    """Limits of all accounts.

    gap_s   between two writes of one account, in seconds
    clock, sleep   the current time, and how to wait
    """

    def __init__(
        self,
        database: Database,
        *,
        gap_s: float = WRITE_GAP_S,
        clock: Callable[[], datetime] = now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database, self._clock, self._sleep = database, clock, sleep
        self._gap = timedelta(seconds=gap_s)

    def check_pause(self, account: str) -> None:
        """Raises ThrottledError while the account is paused."""
        at = self._clock()
        with self._database.reading() as session:
            pause = rate_usage.paused(session, account, at)
        if pause is not None:
            raise ThrottledError(pause.reason, (pause.until - at).total_seconds())

    def acquire_search(self, account: str) -> None:
        """Waits for one of 30 searches a minute; raises ThrottledError if that takes long."""
        self.check_pause(account)
        self.check_pause(account + SEARCH)
        self._reserve(
            account + SEARCH,
            timedelta(0),
            rate_usage.SEARCHES,
            creates_content=True,
            what="30 searches a minute",
        )

    def acquire_write(self, account: str, *, creates_content: bool) -> None:
        """Waits until the account may write; raises ThrottledError if that takes long.

        creates_content  whether the request creates content: GitHub allows 80 a minute and 500 an hour
        """
        self.check_pause(account)
        self._reserve(
            account,
            self._gap,
            rate_usage.CREATIONS,
            creates_content=creates_content,
            what="80 creations a minute and 500 an hour",
        )

    def pause(self, account: str, wait_s: float, reason: str) -> None:
        """Pauses the account in all processes."""
        until = self._clock() + timedelta(seconds=wait_s)
        with self._database.transaction() as session:
            rate_usage.pause(session, account, until, reason)

    def cached_response(self, url: str) -> tuple[str, dict[str, object]] | None:
        """ETag and body of the last response to a GET, None if none is cached."""
        with self._database.reading() as session:
            return response_cache.find(session, url)

    def store_response(self, url: str, etag: str, body: Mapping[str, object]) -> None:
        """Caches a response to a GET."""
        with self._database.transaction(durable=False) as session:
            response_cache.store_response(session, url, etag, dict(body), self._clock())

    def prune(self) -> None:
        """Deletes old rows; call about once an hour."""
        at = self._clock()
        with self._database.transaction(durable=False) as session:
            rate_usage.prune(session, at)
            response_cache.prune(session, at)

    def _reserve(
        self, account: str, gap: timedelta, windows: rate_usage.Windows, *, creates_content: bool, what: str
    ) -> None:
        at = self._clock()
        with self._database.transaction(durable=False) as session:
            when = rate_usage.reserve(
                session,
                account,
                at,
                gap=gap,
                creates_content=creates_content,
                windows=windows,
                max_wait=MAX_WAIT,
            )
        wait_s = (when - at).total_seconds()
        if when - at <= MAX_WAIT:
            if wait_s > 0:
                self._sleep(wait_s)
            return
        raise ThrottledError(
            f"GitHub allows {what}, and they are used up; tried again in {wait_s:.0f} s", wait_s
        )
