"""A sample of `tests.sweeps.roundtrip`: models that others made, read and written, are the same programs."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import onnx
import pytest

from fuzzing.graph.canonical_form import canonicalize, digest
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_bytes, to_onnx
from fuzzing.migrate import onnx_pytorch_tests, onnx_simple_tests
from tests.support.graph_validation import validate
from tests.support.reference_evaluation import all_same, in_onnxruntime, in_reference


@cache
def sample() -> list[Any]:
    """ONNX's tests with models of old opsets and of sequences, two of three."""
    every = [*onnx_simple_tests.collect(), *onnx_pytorch_tests.collect()]
    return [test for place, test in enumerate(every) if place % 3]


def test_models_are_read_and_written_without_loss() -> None:
    for test in sample():
        graph = from_onnx(test.model)
        validate(graph)
        again = to_onnx(graph)
        onnx.checker.check_model(again)
        assert to_bytes(from_onnx(again)) == to_bytes(graph), test.name
        assert [item.name for item in again.graph.input] == [item.name for item in test.model.graph.input]
        assert [item.name for item in again.graph.output] == [item.name for item in test.model.graph.output]
        assert digest(from_onnx(again)) == digest(graph)
        assert canonicalize(canonicalize(graph)) == canonicalize(graph)


@pytest.mark.parametrize("run", [in_reference, in_onnxruntime])
def test_they_give_the_same_bits(run: Any) -> None:
    counts: Counter[str] = Counter()
    for test in sample():
        again = to_onnx(from_onnx(test.model))
        for inputs, _ in test.data_sets:
            names = [item.name for item in test.model.graph.input]
            feeds = {
                name: onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
                for name, value in zip(names, inputs, strict=False)
            }
            try:
                wanted = run(test.model, feeds)
            except Exception:  # noqa: BLE001 - an operator that the runner lacks, which it says in many ways
                counts["not run"] += 1
                continue
            assert all_same(run(again, feeds), wanted), test.name
            counts["the same"] += 1
    assert counts["the same"] > 60, counts
