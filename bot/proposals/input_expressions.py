"""Inputs and expected outputs of a test as short expressions; none uses base64."""

from __future__ import annotations

from bot.errors import RefusalError
from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.values import RAW_DTYPES, Value
from fuzzing.triage.tensor_text import numpy_expression, torch_expression


def numpy_input(given: Value | Recipe) -> str:
    """A numpy expression for an input.

    Long inputs become random numbers of the same range with a fixed seed: not the same bits, so the proof
    that the test fails where the bug is decides. Raises RefusalError for values that numpy cannot hold.
    """
    if not isinstance(given, (Recipe, Tensor)) or given.dtype in RAW_DTYPES:
        raise RefusalError(
            "the program has inputs that are no plain arrays: there is no short test with them"
        )
    tensor = given.draw() if isinstance(given, Recipe) else given
    array = tensor.array()
    if short := numpy_expression(array):
        return short
    if array.dtype.kind not in "fiu":
        raise RefusalError("the program needs inputs that no short expression gives; reduce the bug first")
    draw = "np.random.default_rng(0)"
    low, high = array.min().item(), array.max().item()
    if array.dtype.kind in "iu":
        return f"{draw}.integers({low}, {high + 1}, {array.shape!r}, dtype=np.{array.dtype.name})"
    return f"{draw}.uniform({low:.3g}, {high:.3g}, {array.shape!r}).astype(np.{array.dtype.name})"


def torch_input(given: Value | Recipe) -> str:
    """A torch expression for an input; see `numpy_input`."""
    if isinstance(given, (Recipe, Tensor)) and given.dtype not in RAW_DTYPES:
        tensor = given.draw() if isinstance(given, Recipe) else given
        if tensor.array().dtype != object and (short := torch_expression(tensor.array())):
            return short
    return f"torch.from_numpy({numpy_input(given)})"


def expected_output(value: Value) -> str:
    """A numpy expression for an expected output, "" if there is no short one."""
    if not isinstance(value, Tensor) or value.dtype in RAW_DTYPES:
        return ""
    return numpy_expression(value.array())
