"""Leases: who is at work on a row, for how long, and the signals that end the work.

Whoever claims a row writes its name and a time into it, and pushes that time out while it works. If it dies,
the time comes, and the row is free.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

#: A lease lives 60 s and is renewed every 15 s: three renewals may fail before another process takes
#: the row, as Crater's agents are missed after five heartbeats.
LEASE = timedelta(seconds=60)
RENEW_S = 15.0
#: How often work looks whether it must end; a quarter of the second allowed for that.
POLL_S = 0.25


class LeaseLost(Exception):  # noqa: N818  (a signal for the loop, not a failure)
    """What was worked on is no longer ours: superseded, ended, or its lease went to another process."""


class Interrupted(Exception):  # noqa: N818  (a signal for the loop, not a failure)
    """The process is shutting down; the work will be done again from its rows."""


def new_owner() -> str:
    """A name for leases, 64 characters at most; two of one process differ in the last part."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


class Lease:
    """A lease while its work is done.

    stop       set when the process shuts down
    renew      pushes its end out; raises Abandoned if it is lost
    check      raises Abandoned if it is lost, and needs no write lock; None where renewing is soon enough
    renew_s    seconds between two renewals
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
        """Renews it when it is time; raises Abandoned or Interrupted if the work must end now."""
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
