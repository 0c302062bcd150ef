"""What a Ray cluster costs and gives: onnxruntime cases there and in a process here, in one run.

`python -m tests.benchmarks pools [--cases N] [--rounds N]`. Runs N cases (default 5,000) with one worker
here and on clusters, in turn. The cases are ONNX's node tests, again with another tolerance until there are
N. Prints, of the best times,

- the overhead of a cluster of one node over here (bar: at most 10 %), both on all cores, and the overhead in
  CPU time of all processes, which other load hardly changes;
- the gain of a second machine of one core (bar: 1.8, where two cores are free): each node is kept on a core
  of its own, and this process and the head node, which has no task, have no other cores than the nodes: one
  with one node, two with two. If they always had both, one node would have more than a machine of one core
  gives, and two less than two;
- the share of a core that each cluster takes while it has nothing to do.

The start of a cluster is not counted, nor that of its worker processes, which stay; caches are filled by a
first run on both sides. Ray's processes get our priority.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from bot.runners import LocalRunner, Runner
from bot.runners.ray import RayRunner
from fuzzing.cases import Corpus, TestCase, Tolerance
from fuzzing.execute.shard import Shard
from fuzzing.migrate import onnx_node_tests
from tests.benchmarks._cpu_time import used_by_tree
from tests.bot.runners.pool_helpers import make_shard, ray_cluster, run, verdicts

MAX_OVERHEAD, MIN_GAIN = 0.10, 1.8
IDLE_S = 4.0  # how long an idle cluster is watched


def add_node_tests(folder: Path, number: int) -> Path:
    """A corpus of this many cases of ONNX's node tests."""
    corpus = Corpus(folder)
    tests = [one for one in onnx_node_tests.migrate() if isinstance(one, TestCase)]
    copies = (
        replace(case, tolerance=Tolerance(1e-3, 1e-7 * copy)) if copy else case
        for copy in count()
        for case in tests
    )
    for case in islice(copies, number):
        corpus.add(case)
    return folder


Verdicts = list[tuple[str, str, str]]


class Cost(NamedTuple):
    """Seconds: wall clock, CPU time of all our processes."""

    wall: float
    cpu: float


def measure(runner: Runner, shard: Shard) -> tuple[Cost, Verdicts]:
    """The cost, and what came out."""
    wall, cpu = time.perf_counter(), used_by_tree()
    found = verdicts(run(runner, shard))
    return Cost(time.perf_counter() - wall, used_by_tree() - cpu), found


@contextmanager
def restricted_to(cores: Collection[int]) -> Iterator[None]:
    """Keeps this process and what it starts on these cores; without any, where they are."""
    whole = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or whole)
    try:
        yield
    finally:
        os.sched_setaffinity(0, whole)


def measure_pool(shard: Shard, expected: Verdicts, *cores: int, warm: int = 200) -> tuple[Cost, float]:
    """The cost on a cluster whose processes are up, and the cores that it takes when idle.

    cores  one for each node, and this process and the head node have these alone; one node on all without
    warm   cases to run first, so that workers are up and caches filled
    """
    with restricted_to(cores), ray_cluster(max(len(cores), 1), cores) as cluster:
        runner = RayRunner(cluster.address)
        measure(runner, replace(shard, cases=shard.cases[:warm]))
        cost, found = measure(runner, shard)
        before = used_by_tree()
        time.sleep(IDLE_S)
        idle = (used_by_tree() - before) / IDLE_S
    assert found == expected, "every pool finds the same"
    return cost, idle


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args(argv)
    os.environ |= {"RAY_worker_niceness": "0"}  # 15 by default: the last ones to run on a busy machine
    cores = sorted(os.sched_getaffinity(0))[:2]
    pools: dict[str, tuple[int, ...]] = {"ray": (), "ray_1_core": (*cores[:1],), "ray_2_cores": (*cores,)}
    costs: dict[str, list[Cost]] = {name: [] for name in ("local", *pools)}
    idle: dict[str, list[float]] = {name: [] for name in pools}
    with tempfile.TemporaryDirectory(prefix="assay-pools-") as folder:
        shard = make_shard(add_node_tests(Path(folder) / "cases", given.cases))
        _, expected = measure(LocalRunner(1), shard)
        measure_pool(shard, expected, warm=given.cases)  # fills the caches of all clusters
        for _ in range(given.rounds):
            costs["local"].append(measure(LocalRunner(1), shard)[0])
            for name, nodes in pools.items():
                cost, unused = measure_pool(shard, expected, *nodes)
                costs[name].append(cost)
                idle[name].append(unused)
    wall = {name: min(one.wall for one in found) for name, found in costs.items()}
    cpu = {name: min(one.cpu for one in found) for name, found in costs.items()}
    overhead, gain = wall["ray"] / wall["local"] - 1, wall["ray_1_core"] / wall["ray_2_cores"]
    result = {
        "cases": given.cases,
        "load": os.getloadavg()[0],
        "cores": len(cores),
        "wall_s": {name: [round(one.wall, 2) for one in found] for name, found in costs.items()},
        "cpu_s": {name: [round(one.cpu, 2) for one in found] for name, found in costs.items()},
        "idle_cores": {name: round(min(found), 3) for name, found in idle.items()},
        "overhead": round(overhead, 3),
        "cpu_overhead": round(cpu["ray"] / cpu["local"] - 1, 3),
        "gain": round(gain, 2),
    }
    print(json.dumps(result))
    return 0 if overhead <= MAX_OVERHEAD and gain >= MIN_GAIN else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
