"""Coverage feedback of torchprobe against none, in equal time: lines of the compiler and distinct failures.

Both make mutants of one seed and run each on the rung below the whole compiler; the guided one pays for the
tracing of its sample too. They take turns, the one that has spent less time first, so that both meet the same
load. Then all mutants of both are traced, which is not charged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.migrate.sources import Skip
from fuzzing.migrate.torchprobe import GUIDED, LineTracer, migrate
from tests.benchmarks._common import machine


@dataclass
class Search:
    """One of the two, with what it has spent (seconds) and made."""

    name: str
    mutants: Iterator[TestCase | Skip]
    spent: float = 0.0
    cases: list[TestCase] = field(default_factory=list)
    failures: set[str] = field(default_factory=set)

    def advance(self, compiled: Supervisor[None]) -> None:
        """Makes a mutant and runs it."""
        begin = time.monotonic()
        case = next(self.mutants)
        if isinstance(case, TestCase):
            [(_, execution)] = compiled.serve([(None, case)])
            self.cases.append(case)
            if execution.ending != "returned":
                self.failures.add(f"{execution.ending} {execution.error} {execution.message[:60]}")
        self.spent += time.monotonic() - begin


def main(argv: Sequence[str]) -> int:
    """Prints mutants, lines and failures of both."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks feedback")
    parser.add_argument("--seconds", type=float, default=120, help="of each search")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    for _ in migrate(seed=given.seed + 1, count=6):
        pass  # loads torch's samples and examples
    options = list(backends.get("inductor").rungs.values())[-2]
    compiled: Supervisor[None] = Supervisor(WorkerCommand(sys.executable, "inductor", options=options))
    searches = (
        Search("guided", migrate(seed=given.seed, count=10**6, reward=GUIDED, feedback="inductor")),
        Search("unguided", migrate(seed=given.seed, count=10**6)),
    )
    while (search := min(searches, key=lambda one: one.spent)).spent < given.seconds:
        search.advance(compiled)
    compiled.close()
    reached: dict[str, set[tuple[str, int]]] = {}
    for search in searches:
        tracer = LineTracer("inductor")  # a new one, as some lines run once in a process
        reached[search.name] = set().union(*map(tracer.trace, search.cases))
        tracer.close()
        found = len(reached[search.name])
        print(f"{search.name:9} {len(search.cases)} mutants, {found} lines, {len(search.failures)} failures")
    only = [len(reached[one] - reached[other]) for one, other in (tuple(reached), tuple(reached)[::-1])]
    print(f"lines of one alone: guided {only[0]}, unguided {only[1]}; {machine()}")
    return 0
