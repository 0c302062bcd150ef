"""The queue in front of a number of equal runners, event by event.

Urgent campaigns go first, then those that came first. A campaign may be split into shards that run side by
side and end when the last of them ends. A runner that is free takes the next shard at once and finishes it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from bot.simulation.workload import Arrival


@dataclass(frozen=True)
class Completion:
    """A campaign's arrival, the start of its first shard and the end of its last, in seconds."""

    arrived: float
    started: float
    ended: float

    @property
    def delay_s(self) -> float:
        """Seconds in the queue."""
        return self.started - self.arrived

    @property
    def turnaround_s(self) -> float:
        """Seconds from arrival to result."""
        return self.ended - self.arrived


def run(
    arrivals: Sequence[Arrival], runners: int, *, shards: int = 1, overhead_s: float = 0.0
) -> list[Completion]:
    """The completions, in order of arrival.

    arrivals    in order of time
    shards      parts of a campaign of equal length
    overhead_s  seconds that each shard takes in addition: start of a runner, import of the compiler
    """
    free = [0.0] * runners  # when each runner is free; a heap
    waiting: list[tuple[bool, float, int]] = []  # (not urgent, arrived, number); a heap
    left = [shards] * len(arrivals)
    started, ended = [0.0] * len(arrivals), [0.0] * len(arrivals)
    following = 0
    while following < len(arrivals) or waiting:
        # The next decision: the earliest moment at which a runner is free and a shard waits.
        at = free[0] if waiting else max(free[0], arrivals[following].at)
        while following < len(arrivals) and arrivals[following].at <= at:
            heapq.heappush(waiting, (not arrivals[following].urgent, arrivals[following].at, following))
            following += 1
        _, arrived, number = waiting[0]
        begin = max(at, arrived)
        end = begin + arrivals[number].service_s / shards + overhead_s
        heapq.heapreplace(free, end)
        if left[number] == shards:
            started[number] = begin
        left[number] -= 1
        ended[number] = max(ended[number], end)
        if not left[number]:
            heapq.heappop(waiting)
    return [Completion(one.at, begin, end) for one, begin, end in zip(arrivals, started, ended, strict=True)]
