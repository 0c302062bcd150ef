"""Slots of a runner, shared fairly: pull requests first, then the repository that holds the fewest."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_POLL_S = 0.2  # how soon a stop is noticed while waiting for a slot


@dataclass(frozen=True)
class Claimant:
    """For whom a shard runs: its repository, and whether somebody waits for the result."""

    target: str = ""
    urgent: bool = False


_NOBODY = Claimant()
_CLAIMANT: ContextVar[Claimant] = ContextVar("claimant")


@contextmanager
def running_for(claimant: Claimant) -> Iterator[None]:
    """Slots taken in this context, also in threads with a copy of it, count for `claimant`."""
    token = _CLAIMANT.set(claimant)
    try:
        yield
    finally:
        _CLAIMANT.reset(token)


def claimant() -> Claimant:
    """For whom the present context runs."""
    return _CLAIMANT.get(_NOBODY)


class FairSlots:
    """At most `count` holders at once. Thread-safe.

    A free slot goes to an urgent claimant first, then to the target with the fewest slots, then to the one
    that got its last slot longest ago.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"a runner needs at least one slot, not {count}")
        self.count = count
        self._changed = threading.Condition()
        self._held: Counter[str] = Counter()
        self._last: dict[str, int] = {}  # target → the number of its latest grant
        self._granted = 0
        self._arrived = 0
        self._waiting: list[tuple[int, Claimant]] = []

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._changed:
            return len(self._waiting)

    @contextmanager
    def slot(self, stop: threading.Event, given: Claimant | None = None) -> Iterator[bool]:
        """Waits for a slot; yields False if `stop` was set first."""
        one = given or claimant()
        taken = self._acquire(one, stop)
        try:
            yield taken
        finally:
            if taken:
                with self._changed:
                    self._held[one.target] -= 1
                    self._changed.notify_all()

    def _acquire(self, one: Claimant, stop: threading.Event) -> bool:
        with self._changed:
            self._arrived += 1
            ticket = (self._arrived, one)
            self._waiting.append(ticket)
            try:
                while not (self._held.total() < self.count and self._next() == ticket):
                    if stop.is_set():
                        return False
                    self._changed.wait(_POLL_S)
                if stop.is_set():
                    return False
                self._granted += 1
                self._held[one.target] += 1
                self._last[one.target] = self._granted
                return True
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _next(self) -> tuple[int, Claimant]:
        def order(ticket: tuple[int, Claimant]) -> tuple[bool, int, int, int]:
            number, one = ticket
            return (not one.urgent, self._held[one.target], self._last.get(one.target, 0), number)

        return min(self._waiting, key=order)
