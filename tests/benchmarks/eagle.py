"""Cost of a pair of equal programs, relative to two bare executions of its sides; the bar is 3.

Part of the source `eagle` is migrated. In each round a shard with one worker runs the pairs, rechecks
included, from its first outcome to its last; then a bare process that has the library imported runs the left
and the right programs of the same pairs as they are. Both begin with a new process, bound to one core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fuzzing.cases import Corpus, EquivalentPair
from fuzzing.equivalence import rule
from fuzzing.execute.shard import Shard
from tests.benchmarks._bare_loop import bare
from tests.benchmarks._common import machine, verdict

#: Pairs of optimizers compile, which says little about what a pair costs.
_RULES = ",".join(one.name for one in rule.select("all") if not one.compiles)


def sides(corpus: Path, ids: Sequence[str], made: Path) -> list[str]:
    """Both programs of these pairs, each as a case of a new corpus; their ids in order."""
    found: list[str] = []
    for case in map(Corpus(corpus).get, ids):
        assert isinstance(case.program, EquivalentPair)
        for side in case.program.sides:
            program = replace(case, program=side)
            Corpus(made).add(program)
            found.append(program.id)
    return found


def paired_seconds(corpus: Path, ids: Sequence[str]) -> tuple[float, Counter[str]]:
    """From the first outcome of a shard to the last, and the pairs by verdict."""
    path = corpus.parent / "shard.json"
    path.write_text(json.dumps(Shard(str(corpus), tuple(ids), "torch", "bench", sys.executable).to_json()))
    command = [sys.executable, "-m", "fuzzing.execute", str(path)]
    times, verdicts = [], Counter[str]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "outcome":
                times.append(time.perf_counter())
                verdicts[event["outcome"]["verdict"]] += 1
    return times[-1] - times[0], verdicts


def main(argv: Sequence[str]) -> int:
    """Prints the ratio, round by round and in the median."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks eagle")
    parser.add_argument("--parts", type=int, default=8, help="take the first of so many parts of the source")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rules", default=_RULES)
    args = parser.parse_args(argv)
    print(machine())
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        corpus, apart = Path(folder) / "corpus", Path(folder) / "sides"
        subprocess.run(
            [
                sys.executable, "-m", "fuzzing.migrate", "eagle", "--corpus", str(corpus),
                "--part", f"1/{args.parts}", "--count", "1", "--rules", args.rules,
            ],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        ids = list(Corpus(corpus).ids())
        programs = sides(corpus, ids, apart)
        for _ in range(args.rounds):
            paired, verdicts = paired_seconds(corpus, ids)
            [floor] = bare(apart, "torch", programs, 1, [None])
            ratios.append(paired / floor.wall)
            print(
                f"{len(ids)} pairs {dict(verdicts)}: {1000 * paired / len(ids):.1f} ms a pair, "
                f"{1000 * floor.wall / len(ids):.1f} ms bare, ratio {ratios[-1]:.2f}"
            )
    ratio = statistics.median(ratios)
    print(f"median of {args.rounds} rounds: {ratio:.2f}")
    return verdict(ratio <= 3, "a pair costs <= 3 times its two bare executions")
