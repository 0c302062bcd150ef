"""Figures of a simulated period, and the number of runners that a promise needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.errors import UsageError
from bot.simulation.runner_queue import run
from bot.simulation.workload import Arrival

#: More runners than this are not searched.
MAX_RUNNERS = 65_536
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Figures:
    """What a period costs and how long people wait; times in seconds.

    utilization  busy share of the runners' time
    cost         price of the runners' time for one campaign, idle time included
    """

    runners: int
    campaigns: int
    delay_mean_s: float
    delay_p95_s: float
    turnaround_p50_s: float
    turnaround_p95_s: float
    utilization: float
    cost: float


def measure(
    arrivals: Sequence[Arrival],
    runners: int,
    *,
    shards: int = 1,
    overhead_s: float = 0.0,
    price_per_hour: float = 0.0,
) -> Figures:
    """Simulates the arrivals on so many runners.

    price_per_hour  of one runner, in any currency

    Raises UsageError if nothing arrives.
    """
    if not arrivals:
        raise UsageError("no campaign arrives in this period; simulate more days or more pull requests")
    completions = run(arrivals, runners, shards=shards, overhead_s=overhead_s)
    delays = sorted(one.delay_s for one in completions)
    turnarounds = sorted(one.turnaround_s for one in completions)
    period = max(one.ended for one in completions)
    busy = sum(one.service_s + shards * overhead_s for one in arrivals)
    return Figures(
        runners=runners,
        campaigns=len(arrivals),
        delay_mean_s=sum(delays) / len(delays),
        delay_p95_s=quantile(delays, 0.95),
        turnaround_p50_s=quantile(turnarounds, 0.5),
        turnaround_p95_s=quantile(turnarounds, 0.95),
        utilization=busy / (runners * period),
        cost=runners * period / _HOUR_S * price_per_hour / len(arrivals),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def needed(measure_with: Callable[[int], Figures], p95_s: float) -> Figures | None:
    """The figures with the fewest runners whose 95th percentile of the turnaround is at most `p95_s`.

    None if no number of runners suffices, as when single campaigns take longer.
    """
    low, high = 0, 1  # `low` runners do not suffice
    while measure_with(high).turnaround_p95_s > p95_s:
        if high >= MAX_RUNNERS or (high > 1 and measure_with(high).delay_p95_s == 0.0):
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if measure_with(middle).turnaround_p95_s > p95_s:
            low = middle
        else:
            high = middle
    return measure_with(high)
