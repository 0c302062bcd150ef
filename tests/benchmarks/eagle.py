"""Cost of a pair of equal programs, relative to two bare executions of its sides; the bar is 3.

Part of the source `eagle` is migrated. In each round a shard with one worker runs a third of the pairs, and
another all of them, rechecks included; the difference is the cost of the others, without start and imports.
Then a bare process runs the left and the right programs of that third and, measured, of the others. All are
bound to one core, and the processor's time is compared: the wall clock's is that of other work on it too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fuzzing.cases import Corpus, EquivalentPair
from fuzzing.equivalence import rule
from fuzzing.execute.shard import Shard
from tests.benchmarks._bare_loop import bare_loops
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
    """Processor seconds of a shard with all its processes, and the pairs by verdict."""
    path = corpus.parent / "shard.json"
    path.write_text(json.dumps(Shard(str(corpus), tuple(ids), "torch", "bench", sys.executable).to_json()))
    before = _children_seconds()
    command = [sys.executable, "-m", "fuzzing.execute", str(path)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    verdicts = Counter(event["outcome"]["verdict"] for event in events if event["event"] == "outcome")
    return _children_seconds() - before, verdicts


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bare_seconds(apart: Path, programs: Sequence[str], first: int) -> float:
    """Processor seconds of the programs from `first` on, after those before it."""
    with bare_loops(apart, "torch", programs, [None]) as [loop]:
        loop.begin(0, first, 1)
        loop.took()
        loop.begin(first, len(programs), 1)
        return loop.took().processor


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
        third = len(ids) // 3
        others = len(ids) - third
        for _ in range(args.rounds):
            started, _ = paired_seconds(corpus, ids[:third])
            paired, verdicts = paired_seconds(corpus, ids)
            floor = bare_seconds(apart, programs, 2 * third)
            ratios.append((paired - started) / floor)
            print(
                f"{len(ids)} pairs {dict(verdicts)}: {1000 * (paired - started) / others:.1f} ms a pair, "
                f"{1000 * floor / others:.1f} ms bare, ratio {ratios[-1]:.2f}"
            )
    ratio = statistics.median(ratios)
    print(f"median of {args.rounds} rounds: {ratio:.2f}")
    return verdict(ratio <= 3, "a pair costs <= 3 times its two bare executions")
