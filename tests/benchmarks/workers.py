"""Speedup of two workers over one on two cores; the bar is 1.8.

Runs the same single-operator ONNX models several times through supervisor, workers and oracle, in alternating
rounds, timed once all workers are up. Also prints the machine's own limit in the same rounds (several bare
loops, each bound to a core, against one), and the ratio that CPU time alone allows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.case_cache import CaseCache
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.oracles import decide_outcome
from tests.benchmarks._bare_loop import bare
from tests.benchmarks._common import machine, single_operators, verdict
from tests.benchmarks._cpu_time import Used, used

_WARM = "warm"


def taken(corpus: Path, backend: str, ids: list[str], times: int, workers: int) -> Used:
    """Seconds per case, from when all workers are up to the last case."""
    store, kind = CaseCache(Corpus(corpus)), backends.get(backend)
    supervisor: Supervisor[tuple[str, TestCase]] = Supervisor(
        WorkerCommand(sys.executable, backend), workers=workers
    )

    def cases() -> Iterator[tuple[tuple[str, TestCase], TestCase]]:
        while supervisor.ready < workers:
            case = store.get(ids[0])
            yield (_WARM, case), case
        for _ in range(times):
            for case in map(store.get, ids):
                yield ("", case), case

    begin = end = used()
    left, counted = len(ids) * times, 0
    for (phase, case), execution in supervisor.run(cases()):
        decide_outcome(case, execution, kind, "bench", "CPU")
        if phase == _WARM:
            begin, counted = used(), 0
            continue
        left, counted = left - 1, counted + 1
        if not left:
            end = used()  # what follows the last answer is the workers' end
    return Used(*(part / counted for part in end.since(begin)))


def _possible(one: Used, several: Used, cores: int) -> float:
    """The ratio that CPU time alone allows."""
    return max(one.ours, one.theirs) * cores / (several.ours + several.theirs)


def _shown(used: Used) -> str:
    wall, supervisor, workers = (1e6 * part for part in used)
    return f"{wall:.0f} µs a case (processor: workers {workers:.0f}, supervisor {supervisor:.0f})"


def main(argv: Sequence[str]) -> int:
    """Prints the ratio, round by round and in the median."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks workers")
    parser.add_argument("--backend", default="onnxruntime", choices=backends.compilers())
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--corpus", type=Path)
    args = parser.parse_args(argv)
    print(machine())
    ratios, ceilings, possible = [], [], []
    cores = sorted(os.sched_getaffinity(0))
    bound = [cores[place % len(cores)] for place in range(args.workers)]
    with tempfile.TemporaryDirectory() as temporary:
        corpus = args.corpus or Path(temporary) / "corpus"
        ids = single_operators(corpus, args.cases)
        for _ in range(args.rounds):
            one = taken(corpus, args.backend, ids, args.times, 1)
            several = taken(corpus, args.backend, ids, args.times, args.workers)
            ratios.append(one.wall / several.wall)
            [alone] = bare(corpus, args.backend, ids, args.times, bound[:1])
            beside = bare(corpus, args.backend, ids, args.times, bound)
            ceilings.append(sum(alone.wall / each.wall for each in beside))
            possible.append(_possible(one, several, min(args.workers, len(cores))))
            print(
                f"1 worker {_shown(one)}  {args.workers} workers {_shown(several)}  ratio {ratios[-1]:.2f}  "
                f"bare loops {ceilings[-1]:.2f}  by processor time {possible[-1]:.2f}",
                flush=True,
            )
    ratio, ceiling = statistics.median(ratios), statistics.median(ceilings)
    print(
        f"{args.backend}, {len(ids)} cases {args.times} times, "
        f"median (least to most) of {args.rounds} rounds:"
    )
    print(f"  {args.workers} workers     {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"  {args.workers} bare loops  {ceiling:.2f} ({min(ceilings):.2f} to {max(ceilings):.2f})")
    print(
        f"  by processor time {statistics.median(possible):.2f} ({min(possible):.2f} to {max(possible):.2f})"
    )
    return verdict(ratio >= 1.8, "two workers >= 1.8 times one")
