"""What a Ray cluster costs and gives: onnxruntime cases there and in a process here, in one run.

`python -m tests.benchmarks pools [--cases N] [--rounds N]`. Runs N cases (default 5,000) with one worker
here, on a cluster of one node of one core, and on one of two nodes, in turn. The cases are ONNX's node tests,
again with another tolerance until there are N. Prints the overhead (bar: at most 10 %) and the gain of the
second node (bar: 1.8, where two cores are free), of the best times; and the overhead in CPU time of all
processes, which other load hardly changes. The start of a cluster is not counted, nor that of its worker
processes, which stay; caches are filled by a first run on both sides. Ray's processes get our priority.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
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


def measure_pool(nodes: int, shard: Shard, expected: Verdicts) -> Cost:
    """The cost on a cluster whose processes are up and whose caches are filled."""
    with ray_cluster(nodes) as cluster:
        runner = RayRunner(cluster.address)
        measure(runner, shard)
        cost, found = measure(runner, shard)
    assert found == expected, "every pool finds the same"
    return cost


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args(argv)
    os.environ |= {"RAY_worker_niceness": "0"}  # 15 by default: the last ones to run on a busy machine
    costs: dict[str, list[Cost]] = {"local": [], "ray_1_node": [], "ray_2_nodes": []}
    with tempfile.TemporaryDirectory(prefix="assay-pools-") as folder:
        shard = make_shard(add_node_tests(Path(folder) / "cases", given.cases))
        _, expected = measure(LocalRunner(1), shard)
        for _ in range(given.rounds):
            costs["local"].append(measure(LocalRunner(1), shard)[0])
            for nodes, name in ((1, "ray_1_node"), (2, "ray_2_nodes")):
                costs[name].append(measure_pool(nodes, shard, expected))
    wall = {name: min(one.wall for one in found) for name, found in costs.items()}
    cpu = {name: min(one.cpu for one in found) for name, found in costs.items()}
    overhead, gain = wall["ray_1_node"] / wall["local"] - 1, wall["ray_1_node"] / wall["ray_2_nodes"]
    result = {
        "cases": given.cases,
        "load": os.getloadavg()[0],
        "wall_s": {name: [round(one.wall, 2) for one in found] for name, found in costs.items()},
        "cpu_s": {name: [round(one.cpu, 2) for one in found] for name, found in costs.items()},
        "overhead": round(overhead, 3),
        "cpu_overhead": round(cpu["ray_1_node"] / cpu["local"] - 1, 3),
        "gain": round(gain, 2),
    }
    print(json.dumps(result))
    return 0 if overhead <= MAX_OVERHEAD and gain >= MIN_GAIN else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
