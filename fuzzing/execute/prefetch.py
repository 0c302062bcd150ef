"""How many cases to send ahead to a worker, by the time its last ones took."""

from __future__ import annotations

#: Seconds of work to queue for a worker, at least two cases: some end in 50 µs, at a missing operator. More
#: would be taken from other workers and from the budget, as all sent cases are run.
PREFETCH_S = 0.16
MAX_PREFETCH = 512
_FIRST = 4  # before the first result
_WEIGHT = 0.5  # of the last case: a worker's first ones are slow, and soon forgotten


class Prefetch:
    """The pace of one worker.

    seconds  weighted average time of its last cases; 0 before the first
    depth    number of cases to keep queued for it
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = _FIRST

    def record(self, seconds: float) -> None:
        """Records the seconds that a case took."""
        if self.seconds:
            self.seconds += _WEIGHT * (seconds - self.seconds)
        else:
            self.seconds = seconds
        self.depth = (
            MAX_PREFETCH
            if self.seconds * MAX_PREFETCH <= PREFETCH_S
            else max(2, int(PREFETCH_S / self.seconds))
        )
