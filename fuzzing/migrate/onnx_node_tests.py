"""The node tests of the ONNX standard: one operator each, with inputs and the outputs ONNX expects.

`onnx.backend.test.case.node` builds them in memory; for operators defined as functions it adds the test
again with the body expanded (`…_expanded`), where the operator under test is no longer in the model.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.cases import (
    Absent,
    Comparison,
    OnnxModel,
    Provenance,
    Tensor,
    TestCase,
    Tolerance,
    Value,
)
from fuzzing.cases import Sequence as TensorSequence
from fuzzing.errors import CaseFormatError, InfrastructureError
from fuzzing.migrate.randomness import draws_random_numbers
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase as NodeTest

NAME = "onnx-node-tests"
LIBRARY = "onnx"
_EXPANDED = re.compile(r"(?P<base>.+)_expanded(_ver\d+)?")


class _CannotHoldError(Exception):
    """A value has no form in a case; the text is the skip's reason."""


@register_source(NAME, library=LIBRARY)
def migrate() -> Iterator[TestCase | Skip]:
    """Every node test of the installed ONNX, in its order."""
    tests = collect()
    operator = operator_of(tests)
    release = version(LIBRARY)
    for test in tests:
        for name, inputs, outputs in _data_sets(test):
            provenance = Provenance(NAME, name, operator(test), LIBRARY, release)
            yield _case(test, inputs, outputs, provenance)


def collect() -> list[NodeTest]:
    """All node tests. Raises InfrastructureError where onnx is not installed.

    Every test function is run with numpy seeded by ONNX itself; the seed here covers what modules draw
    as they are imported, so that two processes get the same bytes.
    """
    try:
        from onnx.backend.test.case.node import collect_testcases
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs the onnx package: pip install onnx ({error})") from error
    np.random.seed(0)  # the legacy generator is the one these tests draw from
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")  # the tests cast NaN and overflow on purpose
        tests: list[NodeTest] = list(collect_testcases(None))
    return tests


def operator_of(tests: Iterable[NodeTest]) -> Callable[[NodeTest], str]:
    """A function that tells the operator a test is about.

    An expanded test has the operator of the test it was expanded from; "" where a model of several
    nodes gives no hint.
    """
    single: dict[str, str] = {
        test.name: test.model.graph.node[0].op_type
        for test in tests
        if test.model is not None and len(test.model.graph.node) == 1
    }

    def operator(test: NodeTest) -> str:
        expanded = _EXPANDED.fullmatch(test.name)
        if expanded and expanded["base"] in single:
            return single[expanded["base"]]
        return single.get(test.name, "")

    return operator


def _data_sets(test: NodeTest) -> Iterator[tuple[str, Sequence[Any], Sequence[Any]]]:
    """Each data set of a test, with a name of its own where there are several."""
    sets = test.data_sets or []
    for number, (inputs, outputs) in enumerate(sets):
        yield test.name if len(sets) == 1 else f"{test.name}/{number}", inputs, outputs


def _case(
    test: NodeTest, inputs: Sequence[Any], outputs: Sequence[Any], provenance: Provenance
) -> TestCase | Skip:
    import onnx

    model = test.model
    if model is None:
        return Skip(provenance.test, "the test has no model")
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return Skip(provenance.test, "the model is not valid ONNX", str(error))
    try:
        given = _named([item.name for item in model.graph.input], inputs, "inputs")
        expected = _named([item.name for item in model.graph.output], outputs, "outputs")
    except _CannotHoldError as error:
        return Skip(provenance.test, str(error))
    random = draws_random_numbers(model, dict(given))
    comparison: Comparison = "shapes" if random else "values"
    return TestCase(
        program=OnnxModel(model.SerializeToString(deterministic=True)),
        inputs=given,
        expected=expected,
        tolerance=Tolerance(test.rtol, test.atol),
        comparison=comparison,
        provenance=provenance,
    )


def _named(names: Sequence[str], given: Sequence[Any], what: str) -> tuple[tuple[str, Value], ...]:
    """Values beside the graph's names. A test may leave out trailing values, which are then optional."""
    if len(given) > len(names):
        raise _CannotHoldError(f"the test has more {what} than its graph")
    return tuple((name, to_value(item)) for name, item in zip(names, given, strict=False))


def to_value(given: Any) -> Value:
    """A value of ONNX's Python tests as a Value; raises `_CannotHoldError` with the reason."""
    if given is None:
        return Absent()
    if isinstance(given, (list, tuple)):
        return TensorSequence(tuple(_tensor(item) for item in given))
    return _tensor(given)


def _tensor(given: Any) -> Tensor:
    import onnx

    if isinstance(given, onnx.TensorProto):
        given = onnx.numpy_helper.to_array(given)
    if not isinstance(given, (np.ndarray, np.generic)):
        raise _CannotHoldError(f"a value is {_KINDS.get(type(given).__name__, type(given).__name__)}")
    try:
        return Tensor.of(given)
    except CaseFormatError as error:
        raise _CannotHoldError(f"a tensor has no form in a case: {error}") from None


_KINDS = {
    "NoneType": "a sequence with absent items",
    "dict": "a map",
    "list": "a sequence of sequences",
    "tuple": "a sequence of sequences",
}
