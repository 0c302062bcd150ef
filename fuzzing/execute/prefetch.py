"""How many cases a worker should have ahead of it, going by what its last ones took."""

from __future__ import annotations

#: A worker must never wait for us, so it has cases for so many seconds ahead of it, and two at least: some
#: end in 50 µs, at a missing operator. More would be taken from the other workers, and from a budget: what is
#: sent is run.
PREFETCH_S = 0.16
MAX_PREFETCH = 512
_FIRST = 4  # while nothing is known
_WEIGHT = 0.5  # of the last case: the first of a worker are slow, and soon forgotten


class Prefetch:
    """The pace of one worker.

    seconds  what its last cases took each, the very last most; 0 before the first
    ahead    how many cases it should have
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = _FIRST

    def record(self, seconds: float) -> None:
        """Takes note of what a case took."""
        if self.seconds:
            self.seconds += _WEIGHT * (seconds - self.seconds)
        else:
            self.seconds = seconds
        self.depth = (
            MAX_PREFETCH
            if self.seconds * MAX_PREFETCH <= PREFETCH_S
            else max(2, int(PREFETCH_S / self.seconds))
        )
