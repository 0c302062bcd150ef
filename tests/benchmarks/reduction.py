"""Operators left and runs spent on failing graphs of 50 nodes, compared with polygraphy's `debug reduce`.

Each failure has one cause, planted in onnxruntime by tests/fuzzing/reduce/faulty_backend.py. The graphs are
Isra's, of the paper's operators: for each fault the first seeds whose graph shows it and passes on the real
onnxruntime. Minimality is checked separately by removing each remaining node alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.coverage import operators as operator_sets
from fuzzing.entry_point import note
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.generate.case_builder import CaseOrigin
from fuzzing.generate.case_builder import build_case as case_of
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import operators
from fuzzing.reduce import script
from fuzzing.reduce.graphs import GraphState, keep_nodes, load
from fuzzing.reduce.reduction import Reduction, reduce_case
from fuzzing.reduce.symptom_check import has_symptom, symptom_of
from fuzzing.rng import derive_seed
from tests.benchmarks import _batches, _polygraphy
from tests.benchmarks import _programs as _peer
from tests.benchmarks._common import machine, verdict
from tests.fuzzing.reduce.faulty_backend import SEVERAL, STALE

BACKEND = str(Path(__file__).parents[1] / "fuzzing" / "reduce" / "faulty_backend.py")
OPSET = 18
NODES = 50
#: Maximum graphs tried for one that shows a fault.
MOST_SEEDS = 60
#: Less processor time that eight torch calls must take in one process than alone.
BATCH_RATIO = 3


@dataclass(frozen=True)
class Row:
    """One failure: the result and cost of Assay's reducer, and of polygraphy if it ran.

    cutting  runs in passes that remove operators, which polygraphy has too
    """

    fault: str
    left: int
    runs: int
    cutting: int
    seconds: float
    minimal: bool
    confirmed: bool
    bisected: _polygraphy.ReducedModel | None
    linear: _polygraphy.ReducedModel | None


def main(argv: Sequence[str]) -> int:
    """Exit code 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks reduction")
    parser.add_argument("--faults", nargs="+", metavar="NAME", help="these only; all without it")
    parser.add_argument("--graphs", type=int, default=1, metavar="N", help="failures of each fault")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--polygraphy",
        type=Path,
        metavar="FOLDER",
        help="where `pip install --no-deps --target FOLDER polygraphy onnx-graphsurgeon` has put it",
    )
    parser.add_argument("--programs", type=int, default=0, metavar="N", help="Python programs of each cause")
    parser.add_argument("--batch", type=int, default=0, metavar="N", help="torch calls in one process")
    parser.add_argument("--no-graphs", action="store_true", help="programs and batches only")
    args = parser.parse_args(argv)
    print(f"seed {args.seed}; {machine()}")
    code = 0 if args.no_graphs else _graphs(args)
    code |= _programs(args.programs, args.seed) if args.programs else 0
    return code | (_batch(args.batch, args.seed) if args.batch else 0)


def _graphs(args: argparse.Namespace) -> int:
    print(f"graphs of {NODES} nodes")
    rows = list(_rows(args))
    _print(rows)
    return _verdicts(rows)


def _batch(count: int, seed: int) -> int:
    """Processor time of torch calls in one process, compared with a process for each."""
    cases = _batches.calls(count, seed)
    alone, together, equal = _batches.compare(_shard(_peer.BACKEND, _peer.OPTIONS), cases)
    each = f"{alone / count:.1f} s of processor each alone, {together / count:.1f} s in one process"
    print(f"{count} calls: {each}")
    code = verdict(alone >= BATCH_RATIO * together, f"{BATCH_RATIO} times less ({alone / together:.1f})")
    return code | verdict(equal, "every call reduced, to the same call")


def _programs(each: int, seed: int) -> int:
    """Statements left of Python programs, compared with line-based delta debugging."""
    shard = _shard(_peer.BACKEND, _peer.OPTIONS)
    rows = []
    print(f"{'program':12}{'before':>7}{'left':>6}{'runs':>6}{'s':>7}{'':12}{'by lines':>9}{'runs':>6}")
    for cause in _peer.CAUSES:
        for case in islice(_failing_programs(cause, seed, shard), each):
            begin = time.perf_counter()
            found = reduce_case(case, shard)
            seconds = time.perf_counter() - begin
            with Evaluator(shard) as evaluator:
                theirs = _peer.by_lines(case, evaluator, symptom_of(found.first))
            before, left = int(found.before[0]), int(script.size(found.reduced.best)[0])
            whole = found.confirmed and found.reduced.minimal
            rows.append((left, found.reduced.runs, *theirs, whole))
            ends = "" if whole else "NOT WHOLE"
            print(
                f"{case.provenance.test:12}{before:7}{left:6}{found.reduced.runs:6}{seconds:7.1f} {ends:11}"
                f"{theirs[0]:9}{theirs[1]:6}",
                flush=True,
            )
    ours, runs, peers, theirs_runs = (statistics.median(row[n] for row in rows) for n in range(4))
    print(f"median: {ours:g} statements in {runs:g} runs; by lines {peers:g} in {theirs_runs:g}")
    code = verdict(ours <= 6, f"at most 6 statements left of programs in the median ({ours:g})")
    return code | verdict(all(row[4] for row in rows), "every program minimal and confirmed")


def _failing_programs(cause: str, seed: int, shard: Shard) -> Iterator[TestCase]:
    """Programs that fail; a softmax, say, can hide a wrong value."""
    with Evaluator(shard) as evaluator:
        for case in _peer.programs(cause, seed):
            if evaluator.evaluate([case])[0].verdict.is_failure:
                yield case


def _rows(args: argparse.Namespace) -> Iterator[Row]:
    # Failures that occur only in a used process are never confirmed, as intended.
    faults = args.faults or [
        one for one in backends.get(BACKEND).options["fault"] if one not in (STALE, SEVERAL)
    ]
    for fault in faults:
        for case in _failing(fault, args.graphs, args.seed):
            row = _row(fault, case, args.polygraphy)
            note(f"reduction: {row}")
            yield row


def _shard(backend: str, options: dict[str, str]) -> Shard:
    return Shard("", (), backend, "digest", sys.executable, options=options)


def _failing(fault: str, count: int, seed: int) -> Iterator[TestCase]:
    """Graphs that fail because of the fault alone."""
    known = operators.specifications(OPSET)
    names = tuple(name for name in sorted(operator_sets.get("isra").in_degrees) if name in known)
    solver = Solver(GeneratorSettings(nodes=(NODES, NODES), opset=OPSET, operators=names))
    found = 0
    with (
        Evaluator(_shard(BACKEND, {"fault": fault})) as faulty,
        Evaluator(_shard("onnxruntime", {})) as honest,
    ):
        for number in range(MOST_SEEDS):
            drawn = derive_seed(seed, number)
            case = case_of(solver.generate(drawn), drawn, CaseOrigin("isra", "1"), "")
            if (
                faulty.evaluate([case])[0].verdict.is_failure
                and not honest.evaluate([case])[0].verdict.is_failure
            ):
                yield case
                found += 1
                if found == count:
                    return
    note(f"reduction: {found} of {MOST_SEEDS} graphs fail by {fault}")


def _row(fault: str, case: TestCase, polygraphy: Path | None) -> Row:
    shard = _shard(BACKEND, {"fault": fault})
    begin = time.perf_counter()
    found = reduce_case(case, shard)
    seconds = time.perf_counter() - begin
    wanted = symptom_of(found.first)
    bisected = linear = None
    with Evaluator(shard) as evaluator:
        minimal = found.reduced.minimal and _is_minimal(found, evaluator)
        if polygraphy is not None:
            bisected, linear = _polygraphy.search(polygraphy, load(case, evaluator), evaluator, wanted)
    cutting = sum(
        found.reduced.runs_by_pass.get(name, 0) for name in ("named", "single", "outputs", "nodes", "bypass")
    )
    left = int(_nodes(found.reduced.best))
    return Row(fault, left, found.reduced.runs, cutting, seconds, minimal, found.confirmed, bisected, linear)


def _nodes(subject: GraphState) -> int:
    return len(subject.graph.nodes)


def _is_minimal(found: Reduction, evaluator: Evaluator) -> bool:
    """Whether removing any single node removes the symptom."""
    best: GraphState = found.reduced.best
    every = range(_nodes(best))
    parts = [keep_nodes(best, set(every) - {node}) for node in every]
    outcomes = evaluator.evaluate([part.case() for part in parts if part is not None])
    return not any(has_symptom(outcome, symptom_of(found.first)) for outcome in outcomes)


def _print(rows: Sequence[Row]) -> None:
    print(
        f"{'':26}{'ours':>5}{'runs':>6}{'cutting':>9}{'s':>7}{'':10}{'bisect':>8}{'runs':>6}{'linear':>8}{'runs':>6}"
    )
    for row in rows:
        ends = "" if row.minimal and row.confirmed else "NOT MINIMAL" if row.confirmed else "UNCONFIRMED"
        theirs = "".join(f"{left.operators:8}{left.runs:6}" for left in (row.bisected, row.linear) if left)
        print(f"{row.fault:26}{row.left:5}{row.runs:6}{row.cutting:9}{row.seconds:7.1f} {ends:9}{theirs}")
    print(
        f"median: {statistics.median(row.left for row in rows):g} operators, "
        f"{statistics.median(row.runs for row in rows):g} runs, of them "
        f"{statistics.median(row.cutting for row in rows):g} cutting, "
        f"{statistics.median(row.seconds for row in rows):.1f} s"
    )


def _verdicts(rows: Sequence[Row]) -> int:
    median = statistics.median(row.left for row in rows)
    code = verdict(median <= 2, f"at most 2 operators left in the median ({median:g})")
    whole = [row for row in rows if row.minimal and row.confirmed]
    code |= verdict(len(whole) == len(rows), f"minimal and confirmed: {len(whole)} of {len(rows)}")
    for name in ("bisected", "linear"):
        pairs = [(row, theirs) for row in rows if (theirs := getattr(row, name)) is not None]
        if pairs:
            smaller = sum(row.left <= theirs.operators for row, theirs in pairs)
            what = f"no larger than polygraphy, {name}: {smaller} of {len(pairs)}"
            code |= verdict(smaller == len(pairs), what)
            ours, them = sum(row.cutting for row, _ in pairs), sum(theirs.runs for _, theirs in pairs)
            if name == "linear":  # as its manual has it: bisection first, then linear search
                share = (
                    f"{ours} runs of {them}, {ours / them:.0%}; all our passes: {sum(r.runs for r in rows)}"
                )
                code |= verdict(ours * 2 <= them, f"at most half polygraphy's runs on nodes ({share})")
    return code
