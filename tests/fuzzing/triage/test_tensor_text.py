"""Arrays as short expressions."""

from __future__ import annotations

import numpy as np
import pytest

from fuzzing.triage.tensor_text import numpy_expression, torch_expression


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_are_as_short_as_their_type_allows(dtype: str) -> None:
    array = np.array([[0.1, -2.7], [1 / 3, 5]], dtype)
    source = numpy_expression(array)
    assert source.startswith("np.array([[0.1, -2.7], [0.333")
    assert eval(source, {"np": np}).tobytes() == array.tobytes()
    assert torch_expression(array).startswith("torch.tensor([[0.1, -2.7], [0.333")
    assert numpy_expression(array[0, 0]) == f"np.array(0.1, np.{dtype})"
    if dtype != "float64":
        assert len(source) < len(numpy_expression(array.astype(np.float64)))


def test_the_elements_of_a_full_array_are_short() -> None:
    array = np.full((3, 3), 0.3, np.float32)
    assert numpy_expression(array) == "np.full((3, 3), 0.3, np.float32)"
    assert torch_expression(array) == "torch.full((3, 3), 0.3, dtype=torch.float32)"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_whole_numbers_and_negative_zeros(dtype: str) -> None:
    array = np.array([2048, -0.0, 0, -7], dtype)
    assert numpy_expression(array) == f"np.array([2048, -0.0, 0, -7], np.{dtype})"
    assert "1e" in numpy_expression(np.array([3, 1e30], "float64"))
    assert numpy_expression(np.array([np.nan, -np.inf], dtype)).startswith("np.array([np.nan, -np.inf]")
