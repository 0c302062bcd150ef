"""What a Ray cluster costs and gives: onnxruntime cases there and in a process here, in one run.

`python -m tests.benchmarks pools [--cases N]`. Runs N cases (default 5,000) with one worker here, on a
cluster of one node of one core, and on two. Prints the overhead (bar: at most 10 %) and the gain of the
second node (bar: 1.8, where two cores are free). The start of a cluster is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bot.runners import LocalRunner, Runner
from bot.runners.ray import RayRunner
from fuzzing.execute.shard import Shard
from tests.bot.runners.pool_helpers import add_cases, make_shard, ray_cluster, run, verdicts

MAX_OVERHEAD, MIN_GAIN = 0.10, 1.8


def measure(runner: Runner, shard: Shard) -> tuple[float, list[tuple[str, str, str]]]:
    """Seconds, and what came out."""
    begin = time.perf_counter()
    found = verdicts(run(runner, shard))
    return time.perf_counter() - begin, found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5_000)
    cases = parser.parse_args(argv).cases
    with tempfile.TemporaryDirectory(prefix="assay-pools-") as folder:
        shard = make_shard(add_cases(Path(folder) / "cases", cases, wrong=0))
        measure(LocalRunner(1), shard)  # fills the cache of prepared cases, which Ray's nodes do without
        here, expected = measure(LocalRunner(1), shard)
        there = []
        for nodes in (1, 2):
            with ray_cluster(nodes) as cluster:
                seconds, found = measure(RayRunner(cluster.address), shard)
                there.append(seconds)
                assert found == expected, "every pool finds the same"
    overhead, gain = there[0] / here - 1, there[0] / there[1]
    result = {
        "cases": cases,
        "load": os.getloadavg()[0],
        "local_s": round(here, 2),
        "ray_1_node_s": round(there[0], 2),
        "ray_2_nodes_s": round(there[1], 2),
        "overhead": round(overhead, 3),
        "gain": round(gain, 2),
    }
    print(json.dumps(result))
    return 0 if overhead <= MAX_OVERHEAD and gain >= MIN_GAIN else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
