"""Forgotten attributes: how many regressions of TVM's ONNX converters mutants find and node tests do not.

`python -m tests.sweeps.forgotten_attributes [--mutants N] [--only OPERATOR] [--part I/N] [--corpus DIR]`

A regression is planted by rewriting the installed converters' source: all `attr.get("name", default)` of one
converter ignore the model, so that it always sees the default. A case finds it if its result is right with
the installed converter and wrong, or an error, with the planted one. Node tests come first, then the cases
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


def finds(case: TestCase, planted: ModuleType) -> bool:
    """Whether a case is right with the installed frontend and not with the planted one."""
    model = onnx.load_model_from_string(case.program.to_bytes())
    given = dict(case.inputs)
    try:
        module = _frontend().from_onnx(model)
    except Exception:  # noqa: BLE001 - the installed converter does not take the case
        return False
    try:
        other = planted.from_onnx(model)
        if module.script() == other.script():
            return False
    except Exception:  # noqa: BLE001 - the regression shows as an error
        other = None
    expected = _expected(case)
    if expected is None or not _is_right(module, model, given, expected):
        return False
    return other is None or not _is_right(other, model, given, expected)


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


def _is_right(module: Any, model: onnx.ModelProto, given: Mapping[str, Any], expected: Sequence[Any]) -> bool:
    import tvm
    from tvm import relax

    weights = {tensor.name for tensor in model.graph.initializer}
    try:
        machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
        feeds = [
            tvm.runtime.tensor(given[p.name].array()) for p in model.graph.input if p.name not in weights
        ]
        result = machine["main"](*feeds)
        results = [result] if len(model.graph.output) == 1 else list(result)
        return all(_equal(one.numpy(), want) for one, want in zip(results, expected, strict=False))
    except Exception:  # noqa: BLE001 - whatever TVM raises, the result is not right
        return False


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
    planted = plant_regression(plant)
    cases = _mutants(tests, mutants) if mutants else iter(tests)
    queue.put(next((case.provenance.test for case in islice(cases, _MOST) if finds(case, planted)), ""))


def _in_process(plant: Plant, tests: Sequence[TestCase], mutants: int) -> str:
    """The first case that finds a regression; "" if none does within the limit, or the process dies."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_search, args=(plant, tests, mutants, queue))
    process.start()
    process.join(_LIMIT_S)
    if process.is_alive():
        process.kill()
        process.join()
    return "" if queue.empty() else str(queue.get())


def main(arguments: Sequence[str]) -> int:
    """Prints what found each regression, then counts; 1 if nothing was planted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("--corpus", type=Path)
    given = parser.parse_args(arguments)
    tests, others = _node_tests(), _corpus_cases(given.corpus)
    plants = [
        plant
        for plant in find_plants()
        if any(name in tests for name in plant.operators) and given.only in ("", *plant.operators)
    ]
    part, parts = map(int, given.part.split("/"))
    plants = plants[part - 1 :: parts]
    by_tests = by_corpus = by_mutants = 0
    for plant in plants:
        own = [test for name in plant.operators for test in tests.get(name, ())]
        found = _in_process(plant, own, 0)
        by_tests += bool(found)
        if not found:
            found = _in_process(plant, [case for name in plant.operators for case in others.get(name, ())], 0)
            by_corpus += bool(found)
        if not found and given.mutants:
            found = _in_process(plant, own, given.mutants)
            by_mutants += bool(found)
        print(
            f"{plant.converter}.{plant.attribute} ({', '.join(plant.operators)}): {found or 'survives'}",
            flush=True,
        )
    left = len(plants) - by_tests - by_corpus - by_mutants
    operators = {name for plant in plants for name in plant.operators}
    print(
        f"{len(plants)} regressions of {len(operators)} operators: node tests find {by_tests}, the corpus "
        f"{by_corpus} more, mutants {by_mutants} more, {left} survive"
    )
    return 0 if plants else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
