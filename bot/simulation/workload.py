"""What arrives, and how long it takes: the input of a simulation, drawn from one seed.

Times are seconds from the start of the simulated period.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzing.rng import Rng

DAY_S = 86_400.0


@dataclass(frozen=True)
class Arrival:
    """A campaign that arrives.

    at         seconds from the start
    service_s  seconds it occupies one runner, if it is not split
    urgent     a pull request; these go before all others
    """

    at: float
    service_s: float
    urgent: bool = True


@dataclass(frozen=True)
class ServiceTimes:
    """How long campaigns occupy a runner.

    measured  seconds of campaigns that ran, drawn again with replacement; if empty, exponential
    mean_s    the mean of the exponential distribution
    """

    measured: tuple[float, ...] = ()
    mean_s: float = 0.0

    @property
    def mean(self) -> float:
        """Seconds of an average campaign."""
        return sum(self.measured) / len(self.measured) if self.measured else self.mean_s

    def draw(self, rng: Rng) -> float:
        """The seconds of one campaign."""
        if self.measured:
            return self.measured[rng.below(len(self.measured))]
        return exponential(rng, self.mean_s)


def exponential(rng: Rng, mean: float) -> float:
    """A sample of the exponential distribution."""
    return -mean * math.log(1.0 - rng.random())


def poisson(rng: Rng, per_day: float, days: float, times: ServiceTimes) -> list[Arrival]:
    """Independent arrivals at a constant rate.

    per_day  arrivals
    """
    gap_s, end = DAY_S / per_day, days * DAY_S
    at, arrivals = exponential(rng, gap_s), []
    while at < end:
        arrivals.append(Arrival(at, times.draw(rng)))
        at += exponential(rng, gap_s)
    return arrivals


def scaled(
    rng: Rng, trace: Sequence[float], factor: float, days: float, times: ServiceTimes
) -> list[Arrival]:
    """Arrivals of a trace, repeated for the period, with `factor` copies of each.

    trace  seconds from the start of the trace's first day, ascending; its length is counted in whole days
    factor copies; 1.5 is one and, for a random half, another. A copy is moved by up to 15 minutes, so that
           copies are other pull requests at a similar time of the day.
    """
    length = (trace[-1] // DAY_S + 1) * DAY_S
    whole, part = int(factor), factor - int(factor)
    arrivals = []
    for repetition in range(math.ceil(days * DAY_S / length)):
        for at in trace:
            for copy in range(whole + rng.chance(part)):
                moved = repetition * length + at + (rng.between(-900, 900) if copy or repetition else 0)
                if 0 <= moved < days * DAY_S:
                    arrivals.append(Arrival(moved, times.draw(rng)))
    return sorted(arrivals, key=lambda one: one.at)
