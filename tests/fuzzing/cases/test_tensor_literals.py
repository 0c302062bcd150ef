"""Tensors told by their elements: one form as JSON, one as Python, and modules that are made from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import Device, Init, NewObject, Tensor, TensorArg, TensorLiteral, TorchCall
from fuzzing.cases.argument_reader import argument_from_json
from fuzzing.cases.argument_text import render
from fuzzing.cases.arguments import LITERALS, MAX_LITERAL, argument_to_json
from fuzzing.errors import CaseFormatError

_ELEMENTS: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(0, 127),
    float: st.floats(width=16),
    complex: st.complex_numbers(width=64),
}


@st.composite
def literals(draw: st.DrawFn) -> TensorLiteral:
    dtype = draw(st.sampled_from(sorted(LITERALS)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = math.prod(shape)
    values = draw(st.lists(_ELEMENTS[LITERALS[dtype]], min_size=count, max_size=count))
    return TensorLiteral(dtype, shape, tuple(values))


@given(literal=literals())
def test_a_literal_survives_its_json(literal: TensorLiteral) -> None:
    again = argument_from_json(argument_to_json(literal))
    assert again == literal
    assert hash(again) == hash(literal)


@pytest.mark.compiler_torch_eager
@given(literal=literals())
def test_the_text_makes_the_tensor(literal: TensorLiteral) -> None:
    import torch

    made = eval(render(literal), {"torch": torch})
    assert (str(made.dtype), tuple(made.shape)) == (f"torch.{literal.dtype}", literal.shape)
    want = torch.tensor(literal.values, dtype=made.dtype).reshape(literal.shape)
    assert (
        torch.equal(
            made.nan_to_num(7) if made.dtype.is_floating_point else made,
            want.nan_to_num(7) if made.dtype.is_floating_point else want,
        )
        or made.dtype.is_complex
    )
    np.testing.assert_array_equal(made.to(torch.complex128).numpy(), want.to(torch.complex128).numpy())


@pytest.mark.parametrize(
    ("dtype", "shape", "values", "message"),
    [
        ("quint8", (1,), (1,), "cannot be of type 'quint8'"),
        ("float32", (2,), (1.0,), "the shape must agree"),
        ("float32", (MAX_LITERAL + 1,), (1.0,) * (MAX_LITERAL + 1), "64 is the limit"),
        ("float32", (1,), (1,), "holds numbers of type float"),
        ("int64", (1,), (True,), "holds numbers of type int"),
    ],
)
def test_what_is_no_literal_is_refused(
    dtype: str, shape: tuple[int, ...], values: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(CaseFormatError, match=message):
        TensorLiteral(dtype, shape, values)


@pytest.mark.parametrize(
    "obj",
    [
        {"literal": [1.0], "dtype": "float32"},
        {"literal": [1.0], "dtype": 3, "shape": [1]},
        {"literal": 1.0, "dtype": "float32", "shape": [1]},
        {"literal": [1.0], "dtype": "float32", "shape": [1.0]},
        {"literal": [[1.0]], "dtype": "float32", "shape": [1]},
        {"literal": [1.0], "dtype": "float32", "shape": [1], "more": 1},
    ],
)
def test_json_that_is_no_literal_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(CaseFormatError):
        argument_from_json(obj)


@pytest.mark.compiler_torch_eager
def test_a_loss_keeps_the_weights_it_was_made_from() -> None:
    weight = TensorLiteral("float32", (3,), (0.0, 1.0, 0.0))
    call = TorchCall(
        "torch.nn.CrossEntropyLoss",
        (TensorArg("x"), TensorArg("x1")),
        init=Init(kwargs=(("reduction", "none"), ("weight", weight))),
    )
    assert TorchCall.from_bytes(call.to_bytes()) == call
    logits, classes = np.zeros((3, 3), np.float32), np.arange(3)
    [(_, loss)] = torch_programs.build(call).run([("x", Tensor.of(logits)), ("x1", Tensor.of(classes))])
    assert isinstance(loss, Tensor)
    np.testing.assert_allclose(loss.array(), [0, math.log(3), 0], rtol=1e-6)


def test_a_device_within_a_new_object_is_named_too() -> None:
    init = Init((NewObject("torch.nn.Linear", (1, 1), (("device", Device("cpu")),)),))
    assert 'DEVICE = "cpu"' in TorchCall("torch.nn.Sequential", (TensorArg("x"),), init=init).source()
