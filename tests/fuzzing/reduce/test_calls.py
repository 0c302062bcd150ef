"""Operator instances, judged by plain predicates on the call: no compiler takes part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import KerasLayer, Provenance, Recipe, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.cases.arguments import Dtype
from fuzzing.cases.case import Input
from fuzzing.reduce.calls import SPEC
from fuzzing.reduce.engine import CLEAN, SAME, SearchResult, reduce
from fuzzing.reduce.input_values import as_tensor, cast_input, complexity, simplify_input


def tensor(*shape: int, seed: int = 0, dtype: str = "float32") -> Tensor:
    drawn = np.random.Generator(np.random.PCG64(seed)).uniform(1, 9, shape)
    return Tensor.of(drawn.astype(dtype))


def case(program: TorchCall | KerasLayer, **inputs: Input) -> TestCase:
    given = Provenance("tests", "one", "op", "torch", "")
    outputs = (("output", tensor(1)),)
    return TestCase(program, tuple(inputs.items()), given, expected=outputs)


def reduced(start: TestCase, shows: Callable[[TestCase], bool]) -> SearchResult[TestCase]:
    def classify(candidates: Sequence[TestCase]) -> list[str]:
        return [SAME if shows(candidate) else CLEAN for candidate in candidates]

    found = reduce(start, SPEC, classify)
    assert found.minimal
    assert shows(found.best)
    return found


def call(found: SearchResult[TestCase]) -> TorchCall:
    assert isinstance(found.best.program, TorchCall)
    return found.best.program


CONV = TorchCall(
    "torch.nn.functional.conv2d",
    (TensorArg("x", strides=(1, 24, 4, 8), offset=0), TensorArg("w"), TensorArg("b")),
    (("dilation", (2, 3)), ("groups", 1), ("padding", (1, 7)), ("stride", 2)),
)


def test_parameters_that_do_not_matter_go_and_the_reference_with_them() -> None:
    start = case(CONV, x=tensor(1, 3, 6, 2), w=tensor(4, 3, 2, 2), b=tensor(4))
    found = reduced(start, lambda it: "dilation" in dict(_torch(it).kwargs))
    assert dict(call(found).kwargs).keys() == {"dilation"}
    assert call(found).args == ()
    assert found.best.inputs == ()
    assert found.best.expected is None


def test_a_pair_that_only_goes_together_is_found() -> None:
    start = case(CONV, x=tensor(1, 3, 6, 2), w=tensor(4, 3, 2, 2), b=tensor(4))

    def shows(it: TestCase) -> bool:
        names = dict(_torch(it).kwargs).keys()
        return ("dilation" in names) == ("stride" in names)

    assert not call(reduced(start, shows)).kwargs


def test_what_is_left_is_made_plain() -> None:
    start = case(CONV, x=tensor(1, 3, 6, 2), w=tensor(4, 3, 2, 2), b=tensor(4))

    def shows(it: TestCase) -> bool:
        padding = dict(_torch(it).kwargs).get("padding")
        return isinstance(padding, tuple) and len(padding) > 1 and padding[1] > 2

    assert dict(call(reduced(start, shows)).kwargs) == {"padding": (0, 3)}


def test_lengths_that_must_agree_shrink_together_and_strides_go() -> None:
    start = case(CONV, x=tensor(1, 3, 6, 2), w=tensor(4, 3, 2, 2), b=tensor(4))

    def shows(it: TestCase) -> bool:
        shapes = {name: value.shape for name, given in it.inputs if (value := as_tensor(given)) is not None}
        x, w = shapes.get("x", ()), shapes.get("w", ())
        return len(x) == len(w) == 4 and x[1] == w[1] and x[2] >= 3

    found = reduced(start, shows)
    shapes = {name: as_tensor(given) for name, given in found.best.inputs}
    assert {name: value and value.shape for name, value in shapes.items()} == {
        "x": (1, 1, 3, 1),
        "w": (1, 1, 1, 1),
    }
    assert call(found).args == (TensorArg("x"), TensorArg("w"))


def test_a_layer_is_told_of_the_shape_it_declares() -> None:
    layer = KerasLayer(
        "keras.layers.Dense",
        (("activation", "relu"), ("units", 8)),
        (TensorArg("x", dtype="float32", shape=(4, 6)),),
    )

    def shows(it: TestCase) -> bool:
        assert isinstance(it.program, KerasLayer)
        return "units" in dict(it.program.kwargs) and len(it.program.inputs) == 1

    found = reduced(case(layer, x=tensor(4, 6)), shows).best
    assert isinstance(found.program, KerasLayer)
    [argument] = found.program.inputs
    assert isinstance(argument, TensorArg)
    assert argument.shape == as_tensor(found.inputs[0][1]).shape  # type: ignore[union-attr]
    assert dict(found.program.kwargs) == {"units": 0}


def test_values_become_readable_but_those_that_matter_stay() -> None:
    start = case(TorchCall("torch.abs", (TensorArg("x"),)), x=tensor(3, 2, seed=4))
    largest = float(tensor(3, 2, seed=4).array().max())

    def shows(it: TestCase) -> bool:
        found = [as_tensor(given) for _, given in it.inputs]
        return bool(found) and found[0] is not None and bool((found[0].array() == np.float32(largest)).any())

    [(_, value)] = reduced(start, shows).best.inputs
    array = as_tensor(value).array()  # type: ignore[union-attr]
    assert np.count_nonzero(array) == 1 or array.size == 1
    assert np.float32(largest) in array


def test_element_types_become_common_ones_where_an_argument_names_them_too() -> None:
    start = case(
        TorchCall("torch.sum", (TensorArg("x"),), (("dtype", Dtype("float64")),)),
        x=tensor(2, 2, dtype="float16"),
    )
    found = reduced(start, lambda it: "dtype" in dict(_torch(it).kwargs) and len(it.inputs) == 1)
    assert dict(call(found).kwargs) == {"dtype": Dtype("float32")}
    [(_, value)] = found.best.inputs
    assert isinstance(value, Recipe)
    assert value.dtype == "float32"


@given(st.floats(width=16, allow_nan=False))
def test_a_number_keeps_its_value_in_a_wider_type(number: float) -> None:
    bits = np.array([number], np.float32).view(np.uint32)
    upper = (bits >> 16).astype(np.uint16)
    for given_ in (Tensor.of(np.array([number], np.float16)), Tensor.of(upper, "bfloat16")):
        wide = cast_input(given_, "float32")
        assert isinstance(wide, Tensor)
        want = number if given_.dtype == "float16" else (upper.astype(np.uint32) << 16).view(np.float32)[0]
        assert wide.array()[0] == want


def test_a_whole_tensor_of_zeros_is_told_by_a_recipe() -> None:
    start = case(TorchCall("torch.abs", (TensorArg("x"),)), x=tensor(2, 2))
    [(_, value)] = reduced(start, lambda it: len(it.inputs) == 1).best.inputs
    assert isinstance(value, Recipe)
    assert (value.kind, value.low) == ("constant", 0.0)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
def test_simpler_inputs_keep_type_and_shape(dtype: str) -> None:
    given = Tensor.of(np.array([[1, 3], [0, 7]]).astype(dtype))
    found = [as_tensor(candidate) for candidate in simplify_input(given)]
    assert found
    assert {(item.dtype, item.shape) for item in found if item is not None} == {(dtype, (2, 2))}


def test_values_that_nobody_can_read_as_numbers_are_left_alone() -> None:
    raw = Tensor("bfloat16", (2,), b"\x80\x3f\x00\x40")
    assert list(simplify_input(raw)) == []
    assert complexity(raw) == (2, 0, 0)


def _torch(it: TestCase) -> TorchCall:
    assert isinstance(it.program, TorchCall)
    return it.program
