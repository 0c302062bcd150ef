"""How many cases a worker should have ahead of it, going by what its last ones took."""

from __future__ import annotations

#: A worker must never wait for us, so it has cases for so many seconds ahead of it, and two at least: some
#: end in 50 µs, at a missing operator. More would be taken from the other workers, and from a budget: what is
#: sent is run.
AHEAD_S = 0.16
AHEAD = 512
_FIRST = 4  # while nothing is known
_WEIGHT = 0.5  # of the last case: the first of a worker are slow, and soon forgotten


class Pace:
    """The pace of one worker.

    seconds  what its last cases took each, the very last most; 0 before the first
    ahead    how many cases it should have
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ahead = _FIRST

    def took(self, seconds: float) -> None:
        """Takes note of what a case took."""
        if self.seconds:
            self.seconds += _WEIGHT * (seconds - self.seconds)
        else:
            self.seconds = seconds
        self.ahead = AHEAD if self.seconds * AHEAD <= AHEAD_S else max(2, int(AHEAD_S / self.seconds))
