"""Node tests with constant inputs: what becomes constant, and that the result stays the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.migrate import sources
from fuzzing.migrate.sources import Skip


@pytest.fixture(scope="module")
def migrated() -> list[TestCase | Skip]:
    return list(sources.get("onnx-constant-inputs").migrate())


@pytest.fixture(scope="module")
def cases(migrated: list[TestCase | Skip]) -> dict[str, TestCase]:
    return {item.provenance.test: item for item in migrated if isinstance(item, TestCase)}


@pytest.mark.parametrize(
    ("test", "operator", "constants"),
    [
        ("test_top_k", "TopK", {"k"}),
        ("test_slice", "Slice", {"starts", "ends", "axes", "steps"}),
        ("test_add", "Add", {"y"}),
        ("test_clip_default_max", "Clip", {"max"}),
        ("test_resize_upsample_scales_nearest", "Resize", {"scales"}),
    ],
)
def test_all_but_the_first_are_initializers(
    cases: dict[str, TestCase], test: str, operator: str, constants: set[str]
) -> None:
    case = cases[test]
    assert isinstance(case.program, OnnxModel)
    graph = onnx.load_from_string(case.program.model).graph
    assert {tensor.name for tensor in graph.initializer} == constants
    assert len(graph.input) == len(case.inputs) == 1
    assert case.provenance.operator == operator
    assert case.expected is not None


def test_results_stay_the_same(cases: dict[str, TestCase]) -> None:
    for test in ("test_top_k", "test_slice", "test_gather_0", "test_onehot_with_axis"):
        case = cases[test]
        assert isinstance(case.program, OnnxModel)
        assert case.expected is not None
        feeds = {name: value.array() for name, value in case.inputs if isinstance(value, Tensor)}
        found = ReferenceEvaluator(onnx.load_from_string(case.program.model)).run(None, feeds)
        for (_, expected), value in zip(case.expected, found, strict=True):
            assert isinstance(expected, Tensor)
            np.testing.assert_allclose(value, expected.array(), rtol=1e-5)


def test_a_test_without_further_tensors_is_a_skip(migrated: list[TestCase | Skip]) -> None:
    skipped = {item.test: item.reason for item in migrated if isinstance(item, Skip)}
    assert skipped["test_abs"] == "the test has no tensor beside its first input"
    assert not {"test_add", "test_top_k"} & set(skipped)


def test_cases_differ_from_the_node_tests(cases: dict[str, TestCase]) -> None:
    assert len(cases) > 1000
    assert len({case.id for case in cases.values()}) == len(cases)
