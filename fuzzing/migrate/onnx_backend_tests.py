"""Shared by the sources of ONNX's own backend tests: a test's model and data sets, as cases."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.cases import (
    Absent,
    Comparison,
    Input,
    OnnxModel,
    Provenance,
    Recipe,
    Tensor,
    TestCase,
    Tolerance,
    Value,
)
from fuzzing.cases import Sequence as TensorSequence
from fuzzing.errors import CaseFormatError, InfrastructureError
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError
from fuzzing.migrate.onnx_wrong_tests import WRONG_TESTS
from fuzzing.migrate.random_operators import is_random_model
from fuzzing.migrate.sources import Skip

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnx.backend.test.case.test_case import TestCase as BackendTest

LIBRARY = "onnx"


@contextlib.contextmanager
def isolate_import(source: str) -> Iterator[None]:
    """Context for importing ONNX's tests, some of which compute on import: seeded and quiet.

    Raises InfrastructureError, for the source of this name, where onnx is not installed.
    """
    np.random.seed(0)  # the legacy generator is the one these tests draw from
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")  # the tests cast NaN and overflow on purpose
            yield
    except ImportError as error:
        raise InfrastructureError(f"{source} needs the onnx package: pip install onnx ({error})") from error


def migrate_tests(
    source: str, tests: Sequence[BackendTest], operator: Callable[[BackendTest], str]
) -> Iterator[TestCase | Skip]:
    """Each data set of each test as a case of `source`, or why it is none; `operator` names the operator
    under test. A test of `onnx_wrong_tests` has no expected outputs, so that the library computes them.
    """
    release = version(LIBRARY)
    for test in tests:
        sets = test.data_sets or []
        if not sets:
            yield Skip(test.name, "the test has no data")
        for number, (inputs, outputs) in enumerate(sets):
            name = test.name if len(sets) == 1 else f"{test.name}/{number}"
            provenance = Provenance(source, name, operator(test), LIBRARY, release)
            yield _case(test, inputs, outputs, provenance)


def single_operator(test: BackendTest) -> str:
    """The one operator a test's model holds beside constants; "" if there are several."""
    return "" if test.model is None else operator_in(test.model)


def operator_in(model: ModelProto) -> str:
    """The one operator a model holds beside constants; "" if there are several."""
    kinds = {node.op_type for node in model.graph.node if node.op_type != "Constant"}
    return kinds.pop() if len(kinds) == 1 else ""


def _case(
    test: BackendTest, inputs: Sequence[Any], outputs: Sequence[Any], provenance: Provenance
) -> TestCase | Skip:
    model = test.model
    if model is None:
        return Skip(provenance.test, "the test has no model")
    try:
        check_model(model)
        given = _by_name([item.name for item in model.graph.input], inputs, "inputs")
        expected = _by_name([item.name for item in model.graph.output], outputs, "outputs")
    except UnsupportedModelError as error:
        return Skip(provenance.test, str(error), error.detail)
    right = None if test.name in WRONG_TESTS else expected
    return build_case(model, given, right, Tolerance(test.rtol, test.atol), provenance)


def check_model(model: ModelProto) -> None:
    """Raises UnsupportedModelError for a model that the installed ONNX rejects."""
    import onnx

    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise UnsupportedModelError("the model is not valid ONNX", str(error)) from None


def build_case(
    model: ModelProto,
    given: tuple[tuple[str, Input], ...],
    expected: tuple[tuple[str, Value], ...] | None,
    tolerance: Tolerance | None,
    provenance: Provenance,
) -> TestCase:
    """A model with data as a case; one that draws random numbers is compared by shapes."""
    known = {name: value for name, value in given if not isinstance(value, Recipe)}
    random = is_random_model(model, known)
    comparison: Comparison = "shapes" if random else "values"
    return TestCase(
        program=OnnxModel(model.SerializeToString(deterministic=True)),
        inputs=given,
        expected=expected,
        tolerance=tolerance,
        comparison=comparison,
        provenance=provenance,
    )


def _by_name(names: Sequence[str], given: Sequence[Any], what: str) -> tuple[tuple[str, Value], ...]:
    """Values by the graph's names; trailing values may be missing."""
    if len(given) > len(names):
        raise UnsupportedModelError(f"the test has more {what} than its graph")
    return tuple((name, to_value(item)) for name, item in zip(names, given, strict=False))


def to_value(given: Any) -> Value:
    """A value of ONNX's Python tests as a Value; raises UnsupportedModelError with the reason."""
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
        raise UnsupportedModelError(f"a value is {_KINDS.get(type(given).__name__, type(given).__name__)}")
    try:
        return Tensor.of(given)
    except CaseFormatError as error:
        raise UnsupportedModelError(f"a tensor has no form in a case: {error}") from None


_KINDS = {
    "NoneType": "a sequence with absent items",
    "dict": "a map",
    "list": "a sequence of sequences",
    "tuple": "a sequence of sequences",
}
