"""`python -m fuzzing.coverage.attributes --backend NAME CORPUS…`: what cases exercise of ONNX's attributes.

A value class of an attribute (`attribute_classes`) is *exercised* if the compiler runs a case that has it and
whose reference outputs change with the attribute: without it, or with another value that the corpora hold.
Prints JSON lines:

    {"event": "cell", "operator": …, "attribute": …, "class": …, "status": STATUS, "case": ID or null}
    {"event": "end", "backend": NAME, "counts": {STATUS: N}, "ran": N}

Exit codes and errors as in `fuzzing.entry_point`.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from fuzzing import backends
from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import Corpus, OnnxModel, Tensor, TestCase, Value
from fuzzing.cases import Sequence as SequenceValue
from fuzzing.coverage.attribute_classes import SWITCHES, Cell, classify, list_cells
from fuzzing.entry_point import emit_event, note, run_main
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Verdict

#: In the order in which a cell's best case decides.
STATUSES = ("exercised", "fails", "refused", "insensitive", "never tried")
#: Cases of a cell that are run until one is exercised.
_MOST_CASES = 6
#: Other values of an attribute that are tried.
_MOST_VALUES = 3
#: Cases larger than this are not tried.
_MAX_BYTES = 1 << 20
_LIMIT_S = 5
_RAN = frozenset({Verdict.PASS, Verdict.WRONG_RESULT, Verdict.NONDETERMINISTIC})

Outputs = Sequence[tuple[str, Value]]


@dataclass
class Candidates:
    """The cases of one cell, smallest first, by whether their outputs depend on the attribute."""

    sensitive: list[TestCase] = field(default_factory=list)
    insensitive: list[TestCase] = field(default_factory=list)


class Reference:
    """Outputs of ONNX's reference, within a time limit."""

    def __init__(self) -> None:
        self._backend = OnnxReference()
        self._backend.load("CPU", {})

    def outputs(self, model: onnx.ModelProto, case: TestCase) -> Outputs | None:
        """The outputs of a model with a case's inputs; None where the reference fails."""
        try:
            signal.alarm(_LIMIT_S)
            named = list(case.values())
            program = OnnxModel(model.SerializeToString())
            return self._backend.run(self._backend.compile(self._backend.convert(program, named)), named)
        except Exception:  # noqa: BLE001 - whatever it raises, the changed model has no outputs
            return None
        finally:
            signal.alarm(0)


def find_candidates(cases: Sequence[TestCase], cells: Sequence[Cell]) -> dict[Cell, Candidates]:
    """The cases of each cell, at most `_MOST_CASES` of each kind."""
    wanted, values = set(cells), _collect_values(cases)
    attributes: dict[str, list[str]] = defaultdict(list)
    for name, attribute in dict.fromkeys((cell.operator, cell.attribute) for cell in cells):
        attributes[name].append(attribute)
    found: dict[Cell, Candidates] = defaultdict(Candidates)
    reference = Reference()
    for case in cases:
        model = onnx.load_model_from_string(case.program.to_bytes())
        expected: Outputs | None = None
        for place, node in enumerate(model.graph.node):
            for attribute in attributes.get(node.op_type, ()) if not node.domain else ():
                cell = Cell(node.op_type, attribute, _class_of(node, attribute))
                if cell not in wanted or len(found[cell].sensitive) == _MOST_CASES:
                    continue
                expected = expected if expected is not None else reference.outputs(model, case) or ()
                depends = _depends(case, model, place, cell, values, expected, reference)
                some = found[cell].sensitive if depends else found[cell].insensitive
                if len(some) < _MOST_CASES:
                    some.append(case)
    return found


def _attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((item for item in node.attribute if item.name == name), None)


def _class_of(node: onnx.NodeProto, name: str) -> str:
    item = _attribute(node, name)
    return classify(node.op_type, name, None if item is None else onnx.helper.get_attribute_value(item))


def _collect_values(cases: Sequence[TestCase]) -> dict[tuple[str, str], dict[str, onnx.AttributeProto]]:
    """A value of each class of each operator's attributes."""
    found: dict[tuple[str, str], dict[str, onnx.AttributeProto]] = defaultdict(dict)
    for case in cases:
        for node in onnx.load_model_from_string(case.program.to_bytes()).graph.node:
            for item in node.attribute:
                found[node.op_type, item.name].setdefault(_class_of(node, item.name), item)
    return found


def _depends(
    case: TestCase,
    model: onnx.ModelProto,
    place: int,
    cell: Cell,
    values: Mapping[tuple[str, str], Mapping[str, onnx.AttributeProto]],
    expected: Outputs,
    reference: Reference,
) -> bool:
    """Whether the outputs change without the attribute, or with another value of it.

    A model depends on it, too, if it is illegal without it or with another switch or word.
    """
    others = [item for name, item in values[cell[:2]].items() if name != cell.value_class][:_MOST_VALUES]
    present = _attribute(model.graph.node[place], cell.attribute) is not None
    for item in [None, *others] if present else others:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        node = changed.graph.node[place]
        left = [one for one in node.attribute if one.name != cell.attribute]
        del node.attribute[:]
        node.attribute.extend([*left, *([] if item is None else [item])])
        outputs = reference.outputs(changed, case)
        if outputs is None and _fits_everywhere(item):
            return True
        if outputs is not None and _differ(case, outputs, expected):
            return True
    return False


def _fits_everywhere(item: onnx.AttributeProto | None) -> bool:
    """Whether a value is legal whatever the inputs' ranks, so that a failure is due to its meaning."""
    return item is None or item.name in SWITCHES or item.type == onnx.AttributeProto.STRING


def _differ(case: TestCase, one: Outputs, other: Outputs) -> bool:
    if case.comparison == "shapes":
        return [_type(value) for _, value in one] != [_type(value) for _, value in other]
    return [value for _, value in one] != [value for _, value in other]


def _type(value: Value) -> Any:
    if isinstance(value, SequenceValue):
        return [_type(item) for item in value.items]
    return (value.dtype, value.shape) if isinstance(value, Tensor) else None


def decide(
    cells: Sequence[Cell],
    candidates: Mapping[Cell, Candidates],
    run: Callable[[Sequence[TestCase]], Sequence[Verdict]],
) -> Iterator[tuple[Cell, str, str | None]]:
    """The status of each cell, and the case that decides it; runs cases until one exercises the cell."""
    verdicts: dict[str, Verdict] = {}
    for turn in range(_MOST_CASES):
        wanted: dict[str, TestCase] = {}
        for cell in cells:
            some = candidates.get(cell, Candidates())
            if _status(some, verdicts)[0] != "exercised":
                wanted |= {case.id: case for case in (some.sensitive or some.insensitive)[turn : turn + 1]}
        fresh = [case for case in wanted.values() if case.id not in verdicts]
        verdicts |= {case.id: verdict for case, verdict in zip(fresh, run(fresh), strict=True)}
        note(f"coverage: {len(verdicts)} cases ran")
    for cell in cells:
        yield cell, *_status(candidates.get(cell, Candidates()), verdicts)


def _status(some: Candidates, verdicts: Mapping[str, Verdict]) -> tuple[str, str | None]:
    if not some.sensitive and not some.insensitive:
        return "never tried", None
    best: tuple[str, str | None] = ("refused", None)
    for case in some.sensitive or some.insensitive:
        verdict = verdicts.get(case.id)
        if verdict in _RAN:
            return ("exercised" if some.sensitive else "insensitive"), case.id
        if verdict is not None and verdict.is_failure:
            best = "fails", case.id
    return best


def read_cases(corpora: Sequence[Path]) -> list[TestCase]:
    """The ONNX models of the corpora, fewest nodes and bytes first."""
    found: dict[str, TestCase] = {}
    for corpus in corpora:
        for case_id in Corpus(corpus).ids():
            case = Corpus(corpus).get(case_id)
            if isinstance(case.program, OnnxModel) and len(case.program.to_bytes()) <= _MAX_BYTES:
                found[case_id] = case
    nodes = {
        name: len(onnx.load_model_from_string(case.program.to_bytes()).graph.node)
        for name, case in found.items()
    }
    return sorted(found.values(), key=lambda case: (nodes[case.id], len(case.program.to_bytes()), case.id))


def measure(backend: str, corpora: Sequence[Path], python: str, options: dict[str, str]) -> None:
    """Prints the status of every cell."""

    def expired(_signal: int, _frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, expired)
    if "OnnxModel" not in backends.get(backend).kinds:
        raise UsageError(f"{backend} takes no ONNX models")
    cells = list(list_cells())
    cases = read_cases(corpora)
    if not cases:
        raise UsageError(
            f"no corpus with ONNX models in {', '.join(map(str, corpora))}; "
            "`assay collect --source onnx-node-tests --corpus FOLDER` makes one"
        )
    note(f"coverage: {len(cases)} cases, {len(cells)} classes of attributes' values")
    candidates = find_candidates(cases, cells)
    counts, ran = Counter(dict.fromkeys(STATUSES, 0)), 0
    with Evaluator(Shard("", (), backend, "coverage", python, options=options)) as evaluator:

        def run(some: Sequence[TestCase]) -> list[Verdict]:
            nonlocal ran
            ran += len(some)
            return [outcome.verdict for outcome in evaluator.evaluate(some)]

        for cell, status, case_id in decide(cells, candidates, run):
            counts[status] += 1
            names = {"operator": cell.operator, "attribute": cell.attribute, "class": cell.value_class}
            emit_event(event="cell", **names, status=status, case=case_id)
    emit_event(event="end", backend=backend, counts=dict(counts), ran=ran)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.coverage.attributes",
        description="Measure which attribute values cases exercise on a compiler.",
    )
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS", help="folders of cases")
    parser.add_argument("--backend", required=True, help="the compiler")
    parser.add_argument("--python", default=sys.executable, help="interpreter with the compiler")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    options = dict(item.split("=", 1) for item in given.option)
    return run_main(parser.prog, lambda: measure(given.backend, given.corpora, given.python, options))


if __name__ == "__main__":
    sys.exit(main())
