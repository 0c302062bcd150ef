from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

from fuzzing.cases import Absent, Sequence, Tensor, Value
from fuzzing.cases.values import (
    CARRIERS,
    MAX_ELEMENTS,
    MAX_RANK,
    RAW_DTYPES,
    STRING,
    value_from_json,
    value_to_json,
)
from fuzzing.errors import CaseFormatError
from tests.fuzzing.cases.strategies import numeric_tensors, string_tensors, values


@given(values)
def test_values_survive_json(value: Value) -> None:
    text = json.dumps(value_to_json(value))
    assert value_from_json(json.loads(text)) == value


@given(numeric_tensors())
def test_an_array_gives_its_tensor_back(tensor: Tensor) -> None:
    array = tensor.array()
    assert array.shape == tensor.shape
    assert Tensor.of(array, tensor.dtype) == tensor


@given(string_tensors())
def test_strings_give_their_tensor_back(tensor: Tensor) -> None:
    again = Tensor.of(tensor.array())
    assert again.array().tolist() == tensor.array().tolist()
    assert (again.dtype, again.shape) == (STRING, tensor.shape)


@pytest.mark.parametrize("name", sorted(RAW_DTYPES))
def test_extension_types_travel_as_their_bits(name: str) -> None:
    array = np.zeros((2, 3), getattr(ml_dtypes, name))
    array[1, 2] = 1
    tensor = Tensor.of(array)
    assert (tensor.dtype, tensor.shape) == (name, (2, 3))
    assert tensor.array().view(array.dtype).tolist() == array.tolist()


def test_big_endian_arrays_are_stored_little_endian() -> None:
    assert Tensor.of(np.array([1, 2], ">i4")) == Tensor("int32", (2,), b"\1\0\0\0\2\0\0\0")


def test_a_strided_array_is_stored_in_c_order() -> None:
    assert Tensor.of(np.arange(6, dtype=np.int8).reshape(2, 3).T).data == bytes([0, 3, 1, 4, 2, 5])


def test_a_numpy_scalar_has_no_dimensions() -> None:
    assert Tensor.of(np.float32(1)) == Tensor("float32", (), b"\0\0\x80?")


def test_a_named_type_converts_numbers() -> None:
    assert Tensor.of(np.array([1, 2], np.int64), "float64").array().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.array([1.0, 2.0], np.float16), id="same width, other meaning"),
        pytest.param(np.array([1.0], np.float64), id="other width"),
    ],
)
def test_a_raw_type_takes_its_carrier_alone(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(CaseFormatError, match="bfloat16 travels as uint16"):
        Tensor.of(array, "bfloat16")


@pytest.mark.parametrize("items", [[1], [None], [b"\xff"], ["\ud800"]])
def test_objects_other_than_text_are_refused(items: list[object]) -> None:
    with pytest.raises(CaseFormatError):
        Tensor.of(np.array(items, dtype=object))


def test_bytes_and_numpy_strings_are_text() -> None:
    want = Tensor.of(np.array(["é", "b"], dtype=object))
    assert Tensor.of(np.array(["é".encode(), b"b"], dtype=object)) == want
    assert Tensor.of(np.array(["é", "b"])) == want


def _tensor(**changes: object) -> dict[str, object]:
    return {"dtype": "int8", "shape": [2], "data": "AAE="} | changes


HOSTILE = {
    "no object": [1],
    "unknown key": _tensor(extra=1),
    "missing key": {"dtype": "int8", "shape": [2]},
    "unknown dtype": _tensor(dtype="int128"),
    "dtype of another type": _tensor(dtype=["int8"]),
    "data of another type": _tensor(data=7),
    "not base64": _tensor(data="A*E="),
    "not even ASCII": _tensor(data="é==="),
    "too few bytes": _tensor(shape=[3]),
    "too many bytes": _tensor(shape=[1]),
    "negative dimension": _tensor(shape=[-1]),
    "two negative dimensions": _tensor(shape=[-1, -2]),
    "float dimension": _tensor(shape=[2.0]),
    "bool dimension": _tensor(shape=[True, 2]),
    "text for a shape": _tensor(shape="2"),
    "too many dimensions": _tensor(shape=[1] * (MAX_RANK + 1)),
    "too many elements": _tensor(shape=[MAX_ELEMENTS + 1]),
    "huge dimensions": _tensor(shape=[10**4000] * 30),
    "huge beside zero": _tensor(shape=[0, 2**63], data=""),
    "product overflows beside zero": _tensor(shape=[0, *[2**20] * 20], data=""),
    "absent, perhaps": {"absent": 1},
    "present": {"absent": False},
    "sequence of a number": {"sequence": 3},
    "sequence of sequences": {"sequence": [{"sequence": []}]},
    "sequence of numbers": {"sequence": [1]},
    "strings that are no JSON": _tensor(dtype="string", data="AAE="),
    "strings of numbers": _tensor(dtype="string", data="WzEsMl0="),  # [1,2]
    "strings in an object": _tensor(dtype="string", data="e30="),  # {}
    "one string for two": _tensor(dtype="string", data="WyJhIl0="),  # ["a"]
    "half a surrogate pair": _tensor(dtype="string", shape=[1], data="WyJcdWQ4MDAiXQ=="),  # ["\ud800"]
    "UTF-16 strings": _tensor(dtype="string", shape=[0], data="WwBdAA=="),
}


@pytest.mark.parametrize("obj", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_values_are_refused(obj: object) -> None:
    with pytest.raises(CaseFormatError) as refused:
        value_from_json(obj)
    assert 0 < len(str(refused.value)) < 2000


def test_deep_nesting_is_refused_without_recursion() -> None:
    obj: dict[str, object] = {"sequence": []}
    for _ in range(100_000):
        obj = {"sequence": [obj]}
    with pytest.raises(CaseFormatError):
        value_from_json(obj)


def test_deeply_nested_strings_are_refused() -> None:
    with pytest.raises(CaseFormatError, match="not JSON"):
        Tensor(STRING, (1,), b"[" * 100_000)


@pytest.mark.parametrize("dtype", [*CARRIERS, STRING])
def test_what_is_accepted_numpy_can_hold(dtype: str) -> None:
    shape = (0, *[1] * (MAX_RANK - 2), MAX_ELEMENTS)
    assert Tensor(dtype, shape, b"[]" if dtype == STRING else b"").array().shape == shape


def test_equal_values_are_equal() -> None:
    one = Tensor.of(np.arange(3))
    assert Sequence((one,)) == Sequence((Tensor.of(np.arange(3)),))
    assert Absent() == Absent()
    nothing: list[Value] = [Sequence(()), Absent()]
    assert nothing[0] != nothing[1]
