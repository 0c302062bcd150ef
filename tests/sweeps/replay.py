"""Replay: which cases of a corpus run in their own library.

`python -m tests.sweeps.replay --corpus DIR [--corpus DIR ...] [--count N] [--seed S]`

Prints for each corpus the share that runs, the number of operators and distinct operator instances (a program
with the types and shapes of its inputs), and the reasons of failures. Run by hand: 20,000 cases take minutes.
Exit code 1 below 95 %.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.reference_runner import ReferenceRunners, describe_failure
from fuzzing.migrate.recorders.base import instance_key
from fuzzing.migrate.recorders.recording import LIMITS

ENOUGH = 0.95  # of the cases marked valid must run
_PROGRESS_EVERY = 1000
_CHUNK = 4000  # cases held at a time


def chunks(corpus: Corpus, ids: Sequence[str]) -> Iterator[list[TestCase]]:
    """The cases in chunks."""
    for begin in range(0, len(ids), _CHUNK):
        yield [corpus.get(case_id) for case_id in ids[begin : begin + _CHUNK]]


def replay(root: Path, count: int | None, seed: int) -> float:
    """Runs a corpus, prints the results and returns the share that ran."""
    corpus, begin = Corpus(root), time.monotonic()
    ids = list(corpus.ids())
    if count is not None and count < len(ids):
        ids = sorted(random.Random(seed).sample(ids, count))
    ran, failed, busy_s = 0, Counter[str](), 0.0
    operators, instances = set[str](), set[bytes]()
    for cases in chunks(corpus, ids):
        operators |= {case.provenance.operator for case in cases}
        instances |= {instance_key(case) for case in cases}
        for library, group in ReferenceRunners(root, sys.executable, LIMITS).groups(cases):
            for case, execution in library.run((case, case) for case in group):
                busy_s += sum(execution.durations.values())
                if execution.ending == "returned":
                    ran += 1
                else:
                    reported = describe_failure(library.backend.name, execution).splitlines()[0][:200]
                    failed[f"{case.provenance.operator}: {reported}"] += 1
                if (ran + failed.total()) % _PROGRESS_EVERY == 0:
                    sys.stderr.write(f"{ran + failed.total()} of {len(ids)} cases\n")
    for reason, times in failed.most_common(20):
        print(f"  {times:6d}  {reason}")
    share = ran / len(ids) if ids else 0.0
    print(
        f"{root}: {ran} of {len(ids)} cases run again in their library, {share:.2%}; "
        f"{len(operators)} operators, {len(instances)} distinct instances; "
        f"{time.monotonic() - begin:.0f} s, {busy_s:.0f} s in the library"
    )
    return share


def main(argv: Sequence[str]) -> int:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.replay")
    parser.add_argument("--corpus", type=Path, action="append", required=True)
    parser.add_argument("--count", type=int, help="replay so many, drawn at random; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="what the draw begins from")
    args = parser.parse_args(argv)
    return int(min(replay(corpus, args.count, args.seed) for corpus in args.corpus) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
