"""Models that Assay derives from ONNX's tests, on a second implementation, to find those that ONNX forbids.

`python -m tests.sweeps.derived_models [--source NAME ...] [--seed N] [--count N] [--log FILE]`

Compilers are accused of what a forbidden model does to them. ONNX Runtime takes a legal model and computes
what the case expects, but for what it lacks and for its bugs (`_onnxruntime_limits.py`). Outputs that differ
are judged by Assay's oracle. Whatever else is refused or wrong may be forbidden: it is printed, and the exit
code is 1. Prints counts of each source. --seed and --count are those of drawn sources. Takes five minutes,
two thirds of them for mutants.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import onnx

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.backends.onnx_reference.edge_values import compute_edges
from fuzzing.backends.onnxruntime import OnnxRuntime
from fuzzing.cases import Recipe, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.graph.case_validity import find_case_violations
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import migrate_source
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduction import Reducer
from tests.sweeps._checking_process import CheckingProcess
from tests.sweeps._onnxruntime_limits import BUGS, LACKS
from tests.sweeps.false_positives import agree

#: Without --source: all sources that derive models from tests, and the tests.
SOURCES = (
    "onnx-attributes",
    "onnx-constant-inputs",
    "onnx-contexts",
    "onnx-earlier-opsets",
    "onnx-forms",
    "onnx-mutants",
    "onnx-node-tests",
)
#: Sources with a seed and a count.
_DRAWN = ("graph-search", "isra", "onnx-mutants")
#: Cases that the oracle judges at once.
_CHUNK = 64


@dataclass(frozen=True)
class Result:
    """What ONNX Runtime did with a case that it did not run as expected.

    kind     "lacks", "bug", "excused", "illegal", "refused", "wrong", "died"; "no reference"
             if the evaluator refuses it
    message  of the refusal, or the outputs
    """

    source: str
    test: str
    id: str
    operators: str
    kind: str
    message: str


def run_case(case: TestCase) -> tuple[str, str]:
    """Kind and message of a case's result, "equal" and "differs" among the kinds."""
    named = [(name, value.draw() if isinstance(value, Recipe) else value) for name, value in case.inputs]
    expected = case.expected
    if expected is None:
        reference = OnnxReference()
        reference.load("CPU", {})
        try:
            expected = tuple(reference.run(reference.compile(reference.convert(case.program, named)), named))
        except Exception as error:  # noqa: BLE001 - whatever the evaluator raises
            return "no reference", str(error)
    backend = OnnxRuntime()
    backend.load("CPU", {"optimization": "disabled"})
    try:
        found = backend.run(backend.compile(backend.convert(case.program, named)), named)
    except Exception as error:  # noqa: BLE001 - onnxruntime has a class for each kind
        return "refused", f"{type(error).__name__}: {error}"
    if case.comparison != "values" or agree(found, expected):
        return "equal", ""
    return "differs", f"{found} instead of {expected}"


def examine(name: str, cases: Iterator[TestCase], process: CheckingProcess) -> Iterator[Result | None]:
    """The result of each case of a source; None for those that run as expected."""
    shard = Shard("", (), "onnxruntime", "digest", sys.executable)
    with Reducer(shard, Budget()) as reducer:
        while chunk := list(islice(cases, _CHUNK)):
            found = [process.call(run_case, case) or ("died", "") for case in chunk]
            differing = [case for case, (kind, _) in zip(chunk, found, strict=True) if kind == "differs"]
            wrong = {
                case.id
                for case, outcome in zip(differing, reducer.evaluate(differing), strict=True)
                if outcome.verdict.is_failure
            }
            for case, (kind, message) in zip(chunk, found, strict=True):
                operators = _operators(case)
                if kind == "differs":
                    kind = "wrong" if case.id in wrong else "excused"
                elif kind == "refused" and LACKS.search(message):
                    kind = "lacks"
                if kind in ("refused", "wrong", "died") and BUGS.search(f"{operators}: {message}"):
                    kind = "bug"
                if kind in ("refused", "wrong") and find_case_violations(case, compute_edges(case)):
                    kind = "illegal"
                test = case.provenance.test
                yield None if kind == "equal" else Result(name, test, case.id, operators, kind, message)


def _operators(case: TestCase) -> str:
    return " ".join(node.op_type for node in onnx.load_model_from_string(case.program.to_bytes()).graph.node)


def sweep(names: Iterable[str], options: dict[str, int | str], log: Path | None) -> int:
    """Prints the counts of each source and what is unexplained; returns the number of the latter."""
    process, unexplained = CheckingProcess(), 0
    for name in names:
        given = options if name in _DRAWN else {}
        items = migrate_source(sources.get(name), None, given)
        counts: Counter[str] = Counter()
        for result in examine(name, (item for item in items if isinstance(item, TestCase)), process):
            counts["equal" if result is None else result.kind] += 1
            if result is None:
                continue
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
            if result.kind in ("refused", "wrong", "died"):
                unexplained += 1
                print(f"{result.kind}: {result.test} ({result.id[:8]}): {result.message[-300:]}")
        print(f"{name}: {counts.total()} cases, {dict(sorted(counts.items()))}", flush=True)
    process.close()
    return unexplained


def main(arguments: Sequence[str]) -> int:
    """Runs the sweep; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.derived_models")
    parser.add_argument("--source", action="append", choices=sorted({*SOURCES, *_DRAWN}))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2, help="mutants of each node test, or generated models")
    parser.add_argument("--log", type=Path, help="file for a JSON line of each case that is not as expected")
    args = parser.parse_args(arguments)
    unexplained = sweep(args.source or SOURCES, {"seed": args.seed, "count": args.count}, args.log)
    print(f"{unexplained} cases unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
