"""Reduced models: each must be legal by ONNX's checker and run on ONNX Runtime.

`python -m tests.sweeps.reduced_models [--backend tvm] [--option NAME=VALUE] [--corpus DIR ...] [--cases N]`
`                                      [--seed N] [--most N] [--log FILE]`

Reduces failures of a compiler and checks each result, with the root and the cases with other bugs, by means
that share nothing with the reducer (`_model_check.py`): full checker, strict inference with data propagation,
ONNX Runtime with the recorded inputs, shapes as declared. Results of cases that do not pass this check
themselves are counted separately. Without --backend a planted compiler fails at the last node of every model.
Without --corpus the cases are ONNX's node tests. Exit code 1 if a reduced model is invalid.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from fuzzing.cases import Corpus, OnnxModel, TestCase
from fuzzing.cases import Sequence as SequenceValue
from fuzzing.cases.case import Input
from fuzzing.cases.recipes import Recipe
from fuzzing.cases.values import Tensor
from fuzzing.errors import UsageError
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduction import Reducer
from tests.sweeps._checking_process import CheckingProcess
from tests.sweeps._model_check import find_faults
from tests.sweeps.false_positives import collect

PLANTED = str(Path(__file__).with_name("_last_node_backend.py"))
#: Cases that are run at once, to find failures.
_CHUNK = 32


def check(process: CheckingProcess, case: TestCase) -> tuple[list[str], bool]:
    """As `_model_check.find_faults`, in another process."""
    given = {name: _as_array(value) for name, value in case.inputs}
    found = process.call(find_faults, case.program.to_bytes(), given)
    return (["the checking process died"], True) if found is None else found


def _as_array(value: Input) -> Any:
    if isinstance(value, Recipe):
        value = value.draw()
    if isinstance(value, SequenceValue):
        return [_as_array(item) for item in value.items]
    return value.array() if isinstance(value, Tensor) else None


def find_failures(reducer: Reducer, cases: Iterator[TestCase]) -> Iterator[tuple[TestCase, Outcome]]:
    """The cases that fail, with their outcomes."""
    chunk: list[TestCase] = []
    for case in cases:
        chunk.append(case)
        if len(chunk) == _CHUNK:
            yield from _run_chunk(reducer, chunk)
            chunk = []
    yield from _run_chunk(reducer, chunk)


def _run_chunk(reducer: Reducer, chunk: list[TestCase]) -> Iterator[tuple[TestCase, Outcome]]:
    for case, outcome in zip(chunk, reducer.evaluate(chunk), strict=True):
        if outcome.verdict.is_failure:
            yield case, outcome


def draw_cases(corpora: Sequence[Path], seed: int) -> Iterator[TestCase]:
    """The ONNX models of the corpora, shuffled."""
    drawn = [(corpus, case_id) for corpus in corpora for case_id in sorted(Corpus(corpus).ids())]
    random.Random(seed).shuffle(drawn)
    for corpus, case_id in drawn:
        case = Corpus(corpus).get(case_id)
        if isinstance(case.program, OnnxModel):
            yield replace(case, expected=None)


def reduce_and_check(
    reducer: Reducer, process: CheckingProcess, case: TestCase, outcome: Outcome
) -> Iterator[tuple[dict[str, Any], TestCase]]:
    """A record and the case of each model that a reduction gives; none if the case cannot be reduced."""
    begin = time.monotonic()
    try:
        found = reducer.reduce(case, outcome)
    except UsageError:
        return
    own, _ = check(process, case)
    roots = () if found.root is None else (found.root[0],)
    for kind, small in (("case", found.case), *(("root", one) for one in roots), *_others(found.others)):
        if small.id == case.id:
            continue
        faults, ran = check(process, small)
        record = {
            "kind": kind,
            "from": case.id,
            "id": small.id,
            "operators": _operators(small),
            "test": case.provenance.test,
            "own": own,
            "faults": faults,
            "ran": ran,
            "seconds": round(time.monotonic() - begin, 1),
        }
        yield record, small


def _operators(case: TestCase) -> list[str]:
    return [node.op_type for node in onnx.load_model_from_string(case.program.to_bytes()).graph.node]


def _others(others: Sequence[TestCase]) -> list[tuple[str, TestCase]]:
    return [("other", one) for one in others[:3]]


def main(arguments: Sequence[str]) -> int:
    """Runs the sweep; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.reduced_models")
    parser.add_argument("--backend", default=PLANTED)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--cases", type=int, default=100, help="failures to reduce")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the cases")
    parser.add_argument("--seconds", type=float, default=20, help="of each reduction at most")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which none begins")
    parser.add_argument("--keep", type=Path, help="corpus for invalid results and their originals")
    parser.add_argument("--log", type=Path, help="file for a JSON line of each reduced model")
    args = parser.parse_args(arguments)
    options = dict(item.split("=", 1) for item in args.option)
    with tempfile.TemporaryDirectory() as folder:
        corpora = args.corpus or collect("onnxruntime", Path(folder))
        return sweep(args, corpora, options)


def sweep(args: argparse.Namespace, corpora: Sequence[Path], options: dict[str, str]) -> int:
    """Reduces failures until there are enough; prints the invalid results and counts."""
    shard = Shard("", (), args.backend, "digest", sys.executable, options=options)
    counts: Counter[str] = Counter()
    process, begin, reduced = CheckingProcess(), time.monotonic(), 0
    with Reducer(shard, Budget(seconds=args.seconds)) as reducer:
        for case, outcome in find_failures(reducer, draw_cases(corpora, args.seed)):
            if reduced == args.cases or time.monotonic() - begin > args.limit:
                break
            reduced += 1
            for record, small in reduce_and_check(reducer, process, case, outcome):
                counts[_category(record)] += 1
                if args.log:
                    with args.log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
                if _category(record) == "invalid":
                    print(json.dumps(record), flush=True)
                    if args.keep:
                        Corpus(args.keep).add(small)
                        Corpus(args.keep).add(case)
    process.close()
    print(f"{Path(args.backend).stem} {options or ''}: {reduced} reductions, models: {dict(counts)}")
    return 1 if counts["invalid"] else 0


def _category(record: dict[str, Any]) -> str:
    if record["own"]:
        return "of a case that fails the check itself"
    if record["faults"]:
        return "invalid"
    return "valid" if record["ran"] else "valid by the checker, not taken by onnxruntime"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
