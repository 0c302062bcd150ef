"""Node tests in earlier forms: what they hold, and that the result stays the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.graph.case_validity import find_case_violations
from fuzzing.migrate import sources
from fuzzing.migrate.sources import Skip


@pytest.fixture(scope="module")
def migrated() -> list[TestCase | Skip]:
    return list(sources.get("onnx-earlier-opsets").migrate())


@pytest.fixture(scope="module")
def cases(migrated: list[TestCase | Skip]) -> dict[str, TestCase]:
    return {item.provenance.test: item for item in migrated if isinstance(item, TestCase)}


def model_of(case: TestCase) -> onnx.ModelProto:
    assert isinstance(case.program, OnnxModel)
    return onnx.load_from_string(case.program.model)


@pytest.mark.parametrize(
    ("test", "attribute"),
    [
        ("test_squeeze_negative_axes@12", "axes"),
        ("test_reduce_max_keepdims_example@17", "axes"),
        ("test_unsqueeze_axis_0@12", "axes"),
    ],
)
def test_what_is_an_input_today_was_an_attribute(
    cases: dict[str, TestCase], test: str, attribute: str
) -> None:
    model = model_of(cases[test])
    (node,) = model.graph.node
    assert attribute in {one.name for one in node.attribute}
    assert len(node.input) == 1
    assert model.opset_import[0].version == int(test.partition("@")[2])
    assert cases[test].provenance.operator == node.op_type


def test_results_stay_the_same(cases: dict[str, TestCase]) -> None:
    for test in ("test_squeeze_negative_axes@12", "test_reduce_max_keepdims_example@17"):
        case = cases[test]
        assert case.expected is not None
        feeds = {name: value.array() for name, value in case.inputs if isinstance(value, Tensor)}
        found = ReferenceEvaluator(model_of(case)).run(None, feeds)
        for (_, expected), value in zip(case.expected, found, strict=True):
            assert isinstance(expected, Tensor)
            np.testing.assert_allclose(value, expected.array(), rtol=1e-5)


def test_a_test_without_an_earlier_form_is_a_skip(migrated: list[TestCase | Skip]) -> None:
    skipped = {item.test: item.reason for item in migrated if isinstance(item, Skip)}
    assert skipped["test_abs"] == "the operator has no earlier form that ONNX converts to"
    assert "test_squeeze" not in skipped
    assert "test_softmax_axis_0" in skipped, "its meaning changed with its form"


def test_every_form_is_legal(migrated: list[TestCase | Skip], cases: dict[str, TestCase]) -> None:
    assert {test: found for test, case in cases.items() if (found := find_case_violations(case))} == {}
    assert "test_scan9_scalar@8" in {item.test for item in migrated if isinstance(item, Skip)}
