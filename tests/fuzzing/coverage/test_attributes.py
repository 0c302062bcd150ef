"""Which value classes of attributes cases exercise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.coverage.attribute_classes import ABSENT, Cell, classify, list_cells
from fuzzing.coverage.attributes import decide, find_candidates
from fuzzing.outcomes import Verdict


def case(text: str, **inputs: Any) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    given = tuple((name, Tensor.of(np.asarray(value, np.float32))) for name, value in inputs.items())
    return TestCase(OnnxModel(model.SerializeToString()), given, Provenance("t", "t", "", "onnx", ""))


AXIS = Cell("Softmax", "axis", "from the front")
ALIKE = case("(float[2,2] x) => (float[2,2] y) { y = Softmax<axis = 0>(x) }", x=np.zeros((2, 2)))
DIFFERENT = case("(float[2,2] x) => (float[2,2] y) { y = Softmax<axis = 0>(x) }", x=[[1, 2], [5, 3]])
SWITCHED = Cell("Gemm", "transA", "1")
TRANSPOSED = case(
    "(float[3,2] x, float[3,4] z) => (float[2,4] y) { y = Gemm<transA = 1>(x, z) }",
    x=np.ones((3, 2)), z=np.ones((3, 4)),
)  # fmt: skip
PLAIN = case(
    "(float[2,3] x, float[3,4] z) => (float[2,4] y) { y = Gemm(x, z) }", x=np.ones((2, 3)), z=np.ones((3, 4))
)


@pytest.mark.parametrize(
    ("operator", "name", "value", "expected"),
    [
        ("Softmax", "axis", None, ABSENT),
        ("Softmax", "axis", -1, "from the end"),
        ("MaxPool", "ceil_mode", 1, "1"),
        ("Cast", "to", onnx.TensorProto.INT8, "integer"),
        ("Cast", "to", onnx.TensorProto.BFLOAT16, "other float"),
        ("Cast", "to", onnx.TensorProto.BOOL, "other type"),
        ("Conv", "group", 2, "more than 1"),
        ("Conv", "pads", [0, 1, 0, 1], "equal on both sides"),
        ("Conv", "pads", [0, 0, 1, 1], "different on both sides"),
        ("Conv", "strides", [2, 1], "different"),
        ("Transpose", "perm", [1, 0], "given"),
        ("Pad", "mode", b"wrap", "wrap"),
        ("Elu", "alpha", 0.5, "given"),
    ],
)
def test_values_have_classes(operator: str, name: str, value: Any, expected: str) -> None:
    assert classify(operator, name, value) == expected


def test_every_attribute_has_cells_and_deprecated_operators_have_none() -> None:
    cells = list(list_cells())
    assert len(cells) == len(set(cells))
    known = {(cell.operator, cell.attribute) for cell in cells}
    assert {("Softmax", "axis"), ("If", "then_branch"), ("Cast", "to")} <= known
    assert "Upsample" not in {cell.operator for cell in cells}
    assert Cell("Cast", "to", ABSENT) not in cells


def test_a_case_depends_on_an_attribute_whose_value_changes_its_outputs() -> None:
    found = find_candidates([ALIKE, DIFFERENT], [AXIS])
    assert [found[AXIS].sensitive, found[AXIS].insensitive] == [[DIFFERENT], [ALIKE]]


def test_a_case_depends_on_a_switch_without_which_it_is_illegal() -> None:
    absent = Cell("Gemm", "transA", ABSENT)
    found = find_candidates([TRANSPOSED, PLAIN], [SWITCHED, absent])
    assert found[SWITCHED].sensitive == [TRANSPOSED]
    assert found[absent].sensitive == [PLAIN]


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ({DIFFERENT.id: Verdict.PASS}, "exercised"),
        ({DIFFERENT.id: Verdict.WRONG_RESULT}, "exercised"),
        ({DIFFERENT.id: Verdict.CRASH}, "fails"),
        ({DIFFERENT.id: Verdict.UNSUPPORTED}, "refused"),
    ],
)
def test_a_cell_is_exercised_if_the_compiler_runs_a_case_that_depends_on_it(
    verdicts: dict[str, Verdict], status: str
) -> None:
    def run(cases: Sequence[TestCase]) -> list[Verdict]:
        return [verdicts[one.id] for one in cases]

    never = Cell("Softmax", "axis", "from the end")
    candidates = find_candidates([ALIKE, DIFFERENT], [AXIS, never])
    assert [one[:2] for one in decide([AXIS, never], candidates, run)] == [
        (AXIS, status),
        (never, "never tried"),
    ]


def test_a_cell_of_insensitive_cases_is_insensitive() -> None:
    candidates = find_candidates([ALIKE], [AXIS])
    [(_, status, case_id)] = decide([AXIS], candidates, lambda cases: [Verdict.PASS] * len(cases))
    assert (status, case_id) == ("insensitive", ALIKE.id)
