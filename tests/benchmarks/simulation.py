"""How well the simulated queue predicts a real one: campaigns on a runner of this machine.

`python -m tests.benchmarks simulation [--campaigns N] [--utilization U] [--seed N]`. Campaigns of four sizes
(ONNX's node tests on onnxruntime) run alone first, which gives their service times. Then a trace of N
arrivals runs for real on the `local` runner with one slot, and in the simulation (`bot.simulation`). Bar:
mean turnaround and 95th percentile within 15 %.

Other load changes service times between the two, so run it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from bot.runners import LocalRunner
from bot.simulation.capacity import quantile
from bot.simulation.runner_queue import Completion
from bot.simulation.runner_queue import run as simulate
from bot.simulation.workload import DAY_S, Arrival, ServiceTimes, poisson
from fuzzing.execute.shard import Shard
from fuzzing.rng import Rng
from tests.benchmarks._common import verdict
from tests.benchmarks.pools import add_node_tests
from tests.bot.runners.pool_helpers import make_shard, run

MAX_ERROR = 0.15
_SIZES = (50, 100, 200, 400)  # cases


def shards(folder: Path) -> list[Shard]:
    """A shard for each size, of the same corpus."""
    whole = make_shard(add_node_tests(folder, max(_SIZES)))
    return [replace(whole, cases=whole.cases[:size]) for size in _SIZES]


def service_times(kinds: Sequence[Shard], rounds: int) -> list[float]:
    """Seconds that each kind occupies a runner alone: the median of some rounds."""
    runner, found = LocalRunner(1), [array("d") for _ in kinds]
    for _ in range(rounds):
        for kind, seconds in zip(kinds, found, strict=True):
            begin = time.perf_counter()
            run(runner, kind)
            seconds.append(time.perf_counter() - begin)
    return [median(seconds) for seconds in found]


def draw(rng: Rng, count: int, utilization: float, services: Sequence[float]) -> list[Arrival]:
    """The first `count` arrivals of a Poisson process that keeps a runner so busy."""
    times = ServiceTimes(measured=tuple(services))
    per_day = utilization * DAY_S / times.mean
    return poisson(rng, per_day, 3 * count / per_day, times)[:count]


def run_trace(arrivals: Sequence[Arrival], kinds: Sequence[Shard], services: Sequence[float]) -> list[float]:
    """Runs the arrivals for real; returns the moments at which they ended, in seconds from the start."""
    runner, begin = LocalRunner(1), time.perf_counter()

    def arrive(one: Arrival) -> float:
        time.sleep(max(0.0, begin + one.at - time.perf_counter()))
        run(runner, kinds[services.index(one.service_s)])
        return time.perf_counter() - begin

    with ThreadPoolExecutor(len(arrivals)) as pool:
        return list(pool.map(arrive, arrivals))


def figures(turnarounds: Sequence[float]) -> dict[str, float]:
    """Mean and 95th percentile, in seconds."""
    return {"mean": fmean(turnarounds), "p95": quantile(sorted(turnarounds), 0.95)}


def errors(completions: Sequence[Completion], measured: dict[str, float]) -> dict[str, float]:
    """The simulated figures over the measured ones, less 1."""
    simulated = figures([one.turnaround_s for one in completions])
    return {name: round(simulated[name] / measured[name] - 1, 3) for name in measured}


def main(argv: Sequence[str]) -> int:
    """Prints both, as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3, help="of the service times")
    parser.add_argument("--utilization", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="assay-simulation-") as folder:
        kinds = shards(Path(folder) / "cases")
        services = service_times(kinds, given.rounds)
        arrivals = draw(Rng(given.seed), given.campaigns, given.utilization, services)
        ends = run_trace(arrivals, kinds, services)
    measured = figures([end - one.at for one, end in zip(arrivals, ends, strict=True)])
    error = errors(simulate(arrivals, 1), measured)
    result = {
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "service_s": [round(seconds, 2) for seconds in services],
        "measured_s": {name: round(seconds, 2) for name, seconds in measured.items()},
        "error": error,
    }
    print(json.dumps(result))
    return verdict(all(abs(one) <= MAX_ERROR for one in error.values()), "simulated within 15 % of measured")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
