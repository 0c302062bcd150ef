"""A literal gives the bits it was made from."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reports.literals import READABLE_ELEMENTS, WIDTH, literal
from fuzzing.cases import Absent, Sequence, Tensor, Value
from fuzzing.cases.values import CARRIERS, STRING

SHAPES = st.lists(st.integers(0, 7), max_size=4).map(tuple)


def evaluate(source: str) -> Any:
    def raw(dtype: str, shape: tuple[int, ...], data: str) -> Any:
        return np.frombuffer(base64.b64decode(data), CARRIERS[dtype]).reshape(shape)

    def strings(shape: tuple[int, ...], items: list[str]) -> Any:
        return np.array(items, dtype=object).reshape(shape)

    names = {"np": np, "nan": np.nan, "inf": np.inf, "raw": raw, "strings": strings}
    return eval(source, names)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(sorted(CARRIERS)))
    shape = draw(SHAPES)
    size = int(np.prod(shape, dtype=int)) * np.dtype(CARRIERS[dtype]).itemsize
    if dtype == "bool":
        return Tensor(dtype, shape, bytes(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))))
    return Tensor(dtype, shape, draw(st.binary(min_size=size, max_size=size)))


@given(tensors())
def test_a_literal_gives_the_same_bits(tensor: Tensor) -> None:
    array = evaluate(literal(tensor))
    assert array.dtype == np.dtype(CARRIERS[tensor.dtype])
    assert array.shape == tensor.shape
    assert array.tobytes() == tensor.data


@pytest.mark.parametrize(
    ("array", "source"),
    [
        (
            np.array([[0.1, -0.0], [1e-7, 3e38]], np.float32),
            "np.array([[0.1, -0.0], [1.e-07, 3.e+38]], np.float32)",
        ),
        (np.array([np.nan, np.inf, -np.inf], np.float64), "np.array([nan, inf, -inf], np.float64)"),
        (np.array(7, np.int64), "np.array(7, np.int64)"),
        (np.array([True, False]), "np.array([True, False], np.bool_)"),
        (np.zeros((0, 3), np.float32), "np.array([], np.float32).reshape((0, 3))"),
        (np.ones((64, 64), np.float16), "np.full((64, 64), 1.0, np.float16)"),
    ],
)
def test_small_tensors_are_readable(array: Any, source: str) -> None:
    assert literal(Tensor.of(array)).split() == source.split()


def test_large_tensors_are_bytes_in_lines_of_bounded_width() -> None:
    tensor = Tensor.of(np.arange(READABLE_ELEMENTS + 1, dtype=np.float32))
    source = literal(tensor)
    assert source.startswith('raw("float32", (97,), (')
    assert max(map(len, source.split("\n"))) <= WIDTH


@given(st.lists(st.text(), max_size=5))
def test_strings_survive_and_stay_ascii(items: list[str]) -> None:
    data = json.dumps(items).encode()
    source = literal(Tensor(STRING, (len(items),), data))
    assert source.isascii()
    assert evaluate(source).tolist() == items


def test_sequences_and_absent_values() -> None:
    one: Value = Sequence((Tensor.of(np.array([1], np.int8)), Tensor.of(np.array([2, 3], np.int8))))
    assert [item.tolist() for item in evaluate(literal(one))] == [[1], [2, 3]]
    assert evaluate(literal(Sequence(()))) == []
    assert evaluate(literal(Absent())) is None
