"""Overhead of Assay over the compiler's own time.

Compiles and runs the same single-operator ONNX models in three ways:

    bare       one process with one loop
    assay      the same cases through supervisor, worker and oracle, read from the case cache
    process    a fresh process for each case, as most fuzzers do (a sample)

bare and assay do not count importing the compiler. They alternate in turns of about half a second, so that
load changes affect both. A turn is part of the cases, or all of them several times. Prints assay/bare, the
median of the turns (bar 1.10), and process/assay (bar 20), and CPU time per case of the bare loop, the worker
and the supervisor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.case_cache import CaseCache
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Verdict
from tests.benchmarks._bare_loop import BareLoop, Floor, bare_loops
from tests.benchmarks._common import machine, single_operators, verdict
from tests.benchmarks._cpu_time import Used, used

_PROBE = 50  # cases by which it is told how fast a compiler is


class Assay:
    """Supervisor, worker and oracle with a persistent worker."""

    def __init__(self, corpus: Path, backend: str, ids: list[str]) -> None:
        self._store, self._kind, self._ids = CaseCache(Corpus(corpus)), backends.get(backend), ids
        self._supervisor: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, backend))
        for case_id in ids:
            self._store.get(case_id)

    def took(self, first: int, last: int, times: int) -> tuple[Used, int]:
        """Runs a range of cases repeatedly; returns how many pass."""
        cases = ((case, case) for case in map(self._store.get, self._ids[first:last] * times))
        passed, begin = 0, used()
        for case, execution in self._supervisor.serve(cases):
            passed += decide_outcome(case, execution, self._kind, "bench", "CPU").verdict is Verdict.PASS
        return used().since(begin), passed // times

    def end(self) -> None:
        """Stops the worker."""
        self._supervisor.close()


class Turn(NamedTuple):
    """Times of both ways for the same cases."""

    bare: Floor
    assay: Used
    cases: int

    @property
    def costs(self) -> tuple[float, float, float]:
        """CPU time per case in µs: bare loop, worker, supervisor."""
        spent = self.bare.processor, self.assay.theirs, self.assay.ours
        one, two, three = (1e6 * seconds / self.cases for seconds in spent)
        return one, two, three


def turns(loop: BareLoop, assay: Assay, cases: int, seconds: float, rounds: int) -> Iterator[Turn]:
    """Turns of about that length: `rounds` of them, or enough to cover all cases."""
    probe = min(_PROBE, cases)
    loop.begin(0, probe, 1)
    pace = loop.took().wall / probe
    assay.took(0, probe, 1)  # imports the compiler
    size = max(1, min(cases, round(seconds / pace)))
    times = max(1, round(seconds / pace / size))
    places = [(first, min(first + size, cases)) for first in range(0, cases, size)]
    for turn in range(max(rounds, len(places))):
        first, last = places[turn % len(places)]
        if turn % 2:
            ours, _ = assay.took(first, last, times)
        loop.begin(first, last, times)
        floor = loop.took()
        if not turn % 2:
            ours, _ = assay.took(first, last, times)
        yield Turn(floor, ours, (last - first) * times)


def process_per_case(corpus: Path, backend: str, ids: list[str]) -> float:
    """Seconds per case, each in a fresh process."""
    store = Corpus(corpus)
    supervisor: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, backend), fresh=True)
    begin = time.perf_counter()
    for _ in supervisor.run((case, case) for case in map(store.get, ids)):
        pass
    return (time.perf_counter() - begin) / len(ids)


def _measured(corpus: Path, ids: list[str], args: argparse.Namespace) -> tuple[list[Turn], float, int]:
    """The turns, seconds per case of process-per-case, and the number of passing cases."""
    assay = Assay(corpus, args.backend, ids)
    sample = ids[:: max(1, len(ids) // args.sample)][: args.sample]
    with bare_loops(corpus, args.backend, ids, [None]) as [loop]:
        fresh = [process_per_case(corpus, args.backend, sample[::2])]
        all_turns = turns(loop, assay, len(ids), args.seconds, args.rounds)
        found = list(track(all_turns, "taking turns", console=Console(stderr=True), transient=True))
        fresh.append(process_per_case(corpus, args.backend, sample[1::2] or sample))
        _, passed = assay.took(0, len(ids), 1)
    assay.end()
    return found, statistics.mean(fresh), passed


def main(argv: Sequence[str]) -> int:
    """Prints both ratios: median and interquartile range of the turns."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks harness")
    parser.add_argument("--backend", default="onnxruntime", choices=backends.compilers())
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=60, help="turns of each, at least")
    parser.add_argument("--seconds", type=float, default=0.5, help="what a turn should take")
    parser.add_argument("--sample", type=int, default=30, help="cases of process-per-case")
    parser.add_argument("--corpus", type=Path)
    args = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        corpus = args.corpus or Path(temporary) / "corpus"
        ids = single_operators(corpus, args.cases)
        found, fresh, passed = _measured(corpus, ids, args)
    overheads = [turn.assay.wall / turn.bare.wall for turn in found]
    processors = [turn.assay.theirs / turn.bare.processor for turn in found]
    ours = sum(turn.assay.wall for turn in found) / sum(turn.cases for turn in found)
    print(f"{args.backend}, {len(ids)} cases, {passed} pass; median (middle half) of {len(found)} turns:")
    overhead = _print_spread("assay/bare", overheads)
    _print_spread("worker/bare", processors, "of processor time")
    costs = zip(*(turn.costs for turn in found), strict=True)
    bare, worker, supervisor = map(statistics.median, costs)
    print(f"  processor      bare {bare:.0f}, worker {worker:.0f}, supervisor {supervisor:.0f} µs a case")
    print(f"  process/assay  {fresh / ours:.1f} ({1e3 * fresh:.0f} ms a case against {1e3 * ours:.2f})")
    return verdict(overhead <= 1.10 and fresh / ours >= 20, "assay/bare <= 1.10, process/assay >= 20")


def _print_spread(name: str, ratios: list[float], of: str = "") -> float:
    """Prints a ratio; its median."""
    low, median, high = statistics.quantiles(ratios, n=4)
    print(f"  {name:14} {median:.3f} ({low:.3f} to {high:.3f}) {of}".rstrip())
    return median
