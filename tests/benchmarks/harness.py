"""What Assay adds to the time that a compiler takes for itself.

Three ways to compile and run the same single-operator ONNX models, in one run of this benchmark:

    bare       one process, one loop, nothing between the compiler's calls
    assay      the same cases from the corpus on disk through supervisor, worker and oracle
    process    a fresh process for each case, as most fuzzers do (a sample, scaled)

Assay reads the cases as a run does, from the records that the first run of a corpus leaves beside it: the
first round makes them, and the median is of later ones.

Importing the compiler is not counted for bare and assay; it is what `process` pays each time. Fast compilers
get the cases several times over in each round, bare and assay alike: what takes a fifth of a second
measures the machine's moods. Prints assay/bare (the bar is 1.10) and process/assay (the bar is 20), from
rounds in which bare and assay take turns at going first.

Beside them stands processor time a case, of which other processes on the machine take nothing: of the bare
loop, of the worker, which is what a case waits for, and of the supervisor, which works meanwhile. The bar
is kept on an idle machine if worker/bare keeps it and the supervisor takes less than the worker.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.prepared import Prepared
from fuzzing.execute.process import Command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles import judge
from fuzzing.outcomes import Verdict
from tests.benchmarks._common import bare, machine, single_operators, verdict
from tests.benchmarks._processor import Used, used


def assay(corpus: Path, backend: str, ids: list[str], times: int) -> tuple[Used, int]:
    """From the first answer (a warm-up that imports the compiler) to the last; how many passed."""
    store, kind, passed = Prepared(Corpus(corpus)), backends.get(backend), 0
    left = len(ids) * times
    cases = ((case, case) for case in map(store.get, [ids[0], *ids * times]))
    supervisor: Supervisor[TestCase] = Supervisor(Command(sys.executable, backend))
    answers = supervisor.run(cases)
    next(answers)
    begin = end = used()
    for case, execution in answers:
        passed += judge(case, execution, kind, "bench", "CPU").verdict is Verdict.PASS
        left -= 1
        if not left:
            end = used()  # what follows the last answer is the worker's end
    return end.since(begin), passed // times


def process_per_case(corpus: Path, backend: str, ids: list[str]) -> float:
    """Seconds for the cases, each in a process of its own."""
    store = Corpus(corpus)
    supervisor: Supervisor[TestCase] = Supervisor(Command(sys.executable, backend), fresh=True)
    begin = time.perf_counter()
    for _ in supervisor.run((case, case) for case in map(store.get, ids)):
        pass
    return time.perf_counter() - begin


def _costs(microseconds: tuple[float, ...]) -> str:
    floor, worker, supervisor = microseconds
    return f"bare {floor:.0f}, worker {worker:.0f}, supervisor {supervisor:.0f} µs a case"


def main(argv: Sequence[str]) -> int:
    """Prints both ratios, round by round and in the median."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks harness")
    parser.add_argument("--backend", default="onnxruntime", choices=backends.compilers())
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="what a bare loop should take, at least")
    parser.add_argument("--sample", type=int, default=30, help="cases of process-per-case")
    parser.add_argument("--corpus", type=Path)
    args = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        corpus = args.corpus or Path(temporary) / "corpus"
        ids = single_operators(corpus, args.cases)
        overheads, speedups = [], []
        costs: list[tuple[float, ...]] = []  # µs of processor a case: bare, worker, supervisor
        sample = ids[:: max(1, len(ids) // args.sample)][: args.sample]
        times = math.ceil(args.seconds / bare(corpus, args.backend, ids, 1)[0].wall)
        for turn in range(args.rounds):
            if turn % 2:
                ours, passed = assay(corpus, args.backend, ids, times)
                [floor] = bare(corpus, args.backend, ids, times)
            else:
                [floor] = bare(corpus, args.backend, ids, times)
                ours, passed = assay(corpus, args.backend, ids, times)
            fresh = process_per_case(corpus, args.backend, sample) / len(sample) * len(ids) * times
            overheads.append(ours.wall / floor.wall)
            speedups.append(fresh / ours.wall)
            costs.append(tuple(1e6 * s / len(ids) / times for s in (floor.processor, ours.theirs, ours.ours)))
            print(
                f"bare {floor.wall:.3f} s  assay {ours.wall:.3f} s ({passed} of {len(ids)} pass)  process "
                f"{fresh:.1f} s  assay/bare {overheads[-1]:.3f}  process/assay {speedups[-1]:.1f}  "
                f"processor: {_costs(costs[-1])}",
                flush=True,
            )
    print(f"{args.backend}, {len(ids)} cases {times} times, median (least to most) of {args.rounds} rounds:")
    overhead, speedup = statistics.median(overheads), statistics.median(speedups)
    print(f"  assay/bare    {overhead:.3f} ({min(overheads):.3f} to {max(overheads):.3f})")
    print(f"  process/assay {speedup:.1f} ({min(speedups):.1f} to {max(speedups):.1f})")
    ratios = [(worker / floor, supervisor / worker) for floor, worker, supervisor in costs]
    print(f"  processor     {_costs(tuple(min(one) for one in zip(*costs, strict=True)))}, the least of each")
    print(
        f"  worker/bare   {statistics.median(one for one, _ in ratios):.3f}, "
        f"supervisor/worker {statistics.median(one for _, one in ratios):.3f}, of processor time"
    )
    return verdict(overhead <= 1.10 and speedup >= 20, "assay/bare <= 1.10, process/assay >= 20")
