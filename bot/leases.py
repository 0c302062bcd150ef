"""Leases: which process works on a row, until when, and the exceptions that end the work.

A process claims a row by writing its name and an expiry time, and extends the time while it works. If it
dies, the lease expires and the row is free.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

#: A lease lasts 60 s and is renewed every 15 s: three renewals may fail. (Crater: five heartbeats.)
LEASE = timedelta(seconds=60)
RENEW_S = 15.0
#: Seconds between checks whether work must end.
POLL_S = 0.25


class LeaseLost(Exception):  # noqa: N818  (a signal for the loop, not a failure)
    """The row is no longer ours: superseded, ended, or its lease expired."""


class Interrupted(Exception):  # noqa: N818  (a signal for the loop, not a failure)
    """The process is shutting down; the work is done again later."""


def new_owner() -> str:
    """A name for leases, at most 64 characters, unique in the process."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


class Lease:
    """A lease during its work.

    stop       set when the process shuts down
    renew      extends it; raises LeaseLost
    check      raises LeaseLost without a write lock; None to check only when renewing
    renew_s    seconds between renewals
    """

    def __init__(
        self,
        stop: threading.Event,
        renew: Callable[[], None],
        check: Callable[[], None] | None = None,
        *,
        renew_s: float = RENEW_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop, self._renew, self._check = stop, renew, check
        self._renew_s, self._monotonic = renew_s, monotonic
        self._checked = self._renewed = monotonic()

    def heartbeat(self) -> None:
        """Renews it when due; raises LeaseLost or Interrupted if the work must end now."""
        if self._stop.is_set():
            raise Interrupted
        present = self._monotonic()
        if present - self._checked < POLL_S:
            return
        self._checked = present
        if present - self._renewed >= self._renew_s:
            self._renew()
            self._renewed = present
        elif self._check is not None:
            self._check()
