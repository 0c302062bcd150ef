"""Forgotten attributes: how many regressions of TVM's ONNX converters mutants find and node tests do not.

`python -m tests.sweeps.forgotten_attributes [--mutants N] [--only OPERATOR[.ATTRIBUTE]] [--part I/N]
[--corpus DIR]`

A regression is planted by rewriting the installed converters' source: all `attr.get("name", default)` of one
converter ignore the model, so that it always sees the default. A case finds it if its result is right with
the installed converter and wrong, or an error, with the planted one. A case that is wrong with both shows it
if the outputs differ, or one is an error: campaigns tell that as a change, and file nothing. Node tests come
first, then the cases
of the corpus (`assay collect --source onnx-attributes,onnx-forms`), then mutants of the tests
(`onnx-mutants`, N for each), each only for what those before do not find. Prints one line for each
regression. Takes half an hour; `--part 2/6` is the second sixth of the regressions.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import Corpus, OnnxModel, Tensor, TestCase
from fuzzing.errors import CaseFormatError
from fuzzing.migrate import onnx_constant_inputs, onnx_mutants, onnx_node_tests

os.environ["TVM_NUM_THREADS"] = "1"

#: Node tests and mutants of an operator that are tried on a regression, at most.
_MOST = 40
#: Seconds for one regression and one set of cases; a planted converter may not end.
_LIMIT_S = 120
#: Of the largest error: what wrong numbers may differ by and still be the same.
_SAME_SHARE = 0.01
_TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
#: Attributes without which the converter raises: any case finds that.
_REQUIRED = frozenset({"body", "kernel_shape", "to", "value", "equation"})


@dataclass(frozen=True)
class Plant:
    """A converter class that ignores an attribute, and the operators that it converts."""

    converter: str
    attribute: str
    operators: tuple[str, ...]


class _Forget(ast.NodeTransformer):
    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _read_attribute(node) == self._attribute:
            default = node.args[1] if len(node.args) > 1 else ast.Constant(None)
            return ast.copy_location(default, node)
        return node


def _read_attribute(node: ast.AST) -> str | None:
    """The name in `attr.get("name", …)`; None for anything else."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="attr"), attr="get"), args=[ast.Constant(value=name), *_]
        ):
            return str(name)
    return None


@cache
def _frontend() -> ModuleType:
    return importlib.import_module("tvm.relax.frontend.onnx.onnx_frontend")


@cache
def _tree() -> ast.Module:
    path = _frontend().__file__
    assert path is not None
    found: ast.Module = ast.parse(Path(path).read_text(encoding="utf-8"))
    return found


def find_plants() -> list[Plant]:
    """Each attribute that a converter reads with `attr.get`, with the operators of that converter."""
    operators: dict[str, list[str]] = {}
    for name, converter in _frontend()._get_convert_map().items():
        for parent in getattr(converter, "__mro__", ()):
            operators.setdefault(parent.__name__, []).append(name)
    found = []
    for node in _tree().body:
        if isinstance(node, ast.ClassDef) and node.name in operators:
            names = {name for part in ast.walk(node) if (name := _read_attribute(part))}
            found += [
                Plant(node.name, name, tuple(operators[node.name])) for name in sorted(names - _REQUIRED)
            ]
    return found


def plant_regression(plant: Plant) -> ModuleType:
    """The frontend with the regression, as a module of its own."""
    tree = copy.deepcopy(_tree())
    for place, node in enumerate(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == plant.converter:
            tree.body[place] = _Forget(plant.attribute).visit(node)
    made = ModuleType(_frontend().__name__)
    made.__file__, made.__package__ = _frontend().__file__, _frontend().__package__
    sys.modules["planted_onnx_frontend"] = made
    exec(compile(ast.fix_missing_locations(tree), str(made.__file__), "exec"), made.__dict__)
    return made


def compare(case: TestCase, planted: ModuleType) -> str:
    """How a case does with the planted frontend: "found" if it is right with the installed one only,
    "changed" if it is wrong with both and not alike, else "".
    """
    model = onnx.load_model_from_string(case.program.to_bytes())
    given = dict(case.inputs)
    try:
        module = _frontend().from_onnx(model)
    except Exception:  # noqa: BLE001 - the installed converter does not take the case
        return ""
    try:
        other = planted.from_onnx(model)
        if module.script() == other.script():
            return ""
    except Exception:  # noqa: BLE001 - the regression shows as an error
        other = None
    expected = _expected(case)
    if expected is None:
        return ""
    before, after = _outputs(module, model, given), other and _outputs(other, model, given)
    if before is not None and _are_equal(before, expected):
        return "" if after is not None and _are_equal(after, expected) else "found"
    if before is None or after is None:
        return "changed" if before is not after else ""
    return "changed" if any(map(_differs, after, before, expected)) else ""


def _expected(case: TestCase) -> list[Any] | None:
    if case.expected is not None:
        return [value.array() if isinstance(value, Tensor) else None for _, value in case.expected]
    reference = OnnxReference()
    reference.load("CPU", {})
    try:
        model = reference.convert(case.program, list(case.inputs))  # type: ignore[arg-type]
        found = reference.run(reference.compile(model), list(case.inputs))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - no reference, no comparison
        return None
    return [value.array() if isinstance(value, Tensor) else None for _, value in found]


def _outputs(module: Any, model: onnx.ModelProto, given: Mapping[str, Any]) -> list[Any] | None:
    """What TVM computes; None for an error."""
    import tvm
    from tvm import relax

    weights = {tensor.name for tensor in model.graph.initializer}
    try:
        machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
        feeds = [
            tvm.runtime.tensor(given[p.name].array()) for p in model.graph.input if p.name not in weights
        ]
        result = machine["main"](*feeds)
        return [one.numpy() for one in ([result] if len(model.graph.output) == 1 else result)]
    except Exception:  # noqa: BLE001 - whatever TVM raises
        return None


def _are_equal(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(_equal(one, want) for one, want in zip(found, expected, strict=False))


def _differs(after: Any, before: Any, want: Any) -> bool:
    """Whether campaigns tell two wrong outputs apart (bot/campaigns/classify/changes.py)."""
    if (after.shape, after.dtype) != (before.shape, before.dtype):
        return True
    if want is None or before.shape != want.shape or not before.size or before.dtype.kind not in "iuf":
        return not _equal(after, before)
    error = np.nanmax(np.abs(before.astype(float) - want.astype(float)))
    return bool(np.nanmax(np.abs(after.astype(float) - before.astype(float))) > _SAME_SHARE * error)


def _equal(one: Any, want: Any) -> bool:
    if want is None or one.shape != want.shape or one.dtype != want.dtype:
        return False
    return bool(np.allclose(one, want, equal_nan=True, **_TOLERANCE) if want.dtype.kind in "fiub" else True)


def _node_tests() -> dict[str, list[TestCase]]:
    """The node tests by operator, those with constant axes and shapes first: TVM takes more of them."""
    found: dict[str, list[TestCase]] = {}
    for source in (onnx_constant_inputs.migrate(), onnx_node_tests.migrate()):
        for item in source:
            if (
                isinstance(item, TestCase)
                and item.provenance.operator
                and isinstance(item.program, OnnxModel)
            ) and "_expanded" not in item.provenance.test:
                found.setdefault(item.provenance.operator, []).append(item)
    return found


def _corpus_cases(folder: Path | None) -> dict[str, list[TestCase]]:
    """The models of a corpus by operator."""
    found: dict[str, list[TestCase]] = {}
    corpus = Corpus(folder) if folder else None
    for case in map(corpus.get, sorted(corpus.ids())) if corpus else ():
        if isinstance(case.program, OnnxModel) and case.provenance.operator:
            found.setdefault(case.provenance.operator, []).append(case)
    return found


def _mutants(tests: Sequence[TestCase], count: int) -> Iterator[TestCase]:
    for test in tests:
        try:
            for item in onnx_mutants.mutate_case(replace(test, expected=None, tolerance=None), 0, count):
                if isinstance(item, TestCase):
                    yield item
        except CaseFormatError:
            continue


def _search(plant: Plant, tests: Sequence[TestCase], mutants: int, queue: Any) -> None:
    planted, changed = plant_regression(plant), ""
    cases = _mutants(tests, mutants) if mutants else iter(tests)
    for case in islice(cases, _MOST):
        how = compare(case, planted)
        if how == "found":
            queue.put((case.provenance.test, ""))
            return
        changed = changed or (case.provenance.test if how else "")
    queue.put(("", changed))


def _in_process(plant: Plant, tests: Sequence[TestCase], mutants: int) -> tuple[str, str]:
    """The first case that finds a regression, else the first that it changes; "" if none does within the
    limit, or the process dies.
    """
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_search, args=(plant, tests, mutants, queue))
    process.start()
    process.join(_LIMIT_S)
    if process.is_alive():
        process.kill()
        process.join()
    return ("", "") if queue.empty() else queue.get()


def main(arguments: Sequence[str]) -> int:
    """Prints what found each regression, then counts; 1 if nothing was planted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=3)
    parser.add_argument("--only", default="", metavar="OPERATOR[.ATTRIBUTE]")
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("--corpus", type=Path)
    given = parser.parse_args(arguments)
    tests, others = _node_tests(), _corpus_cases(given.corpus)
    operator, _, attribute = given.only.partition(".")
    plants = [
        plant
        for plant in find_plants()
        if any(name in tests for name in plant.operators)
        and operator in ("", *plant.operators)
        and attribute in ("", plant.attribute)
    ]
    part, parts = map(int, given.part.split("/"))
    plants = plants[part - 1 :: parts]
    counts = Counter[str]()
    for plant in plants:
        own = [test for name in plant.operators for test in tests.get(name, ())]
        corpus = [case for name in plant.operators for case in others.get(name, ())]
        tries = [("tests", own, 0), ("corpus", corpus, 0), ("mutants", own, given.mutants)]
        found = first_changed = how = ""
        for how, cases, mutants in tries[: None if given.mutants else 2]:  # noqa: B007 - the one that found it
            found, changed = _in_process(plant, cases, mutants)
            first_changed = first_changed or changed
            if found:
                break
        counts[how if found else "changed" if first_changed else "none"] += 1
        told = found or (f"changes {first_changed}" if first_changed else "survives")
        print(f"{plant.converter}.{plant.attribute} ({', '.join(plant.operators)}): {told}", flush=True)
    operators = {name for plant in plants for name in plant.operators}
    print(
        f"{len(plants)} regressions of {len(operators)} operators: node tests find {counts['tests']}, "
        f"the corpus {counts['corpus']} more, mutants {counts['mutants']} more, "
        f"{counts['changed']} change a wrong result, {counts['none']} survive"
    )
    return 0 if plants else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
