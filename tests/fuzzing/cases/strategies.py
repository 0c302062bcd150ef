"""Hypothesis strategies for values, recipes and cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzzing.cases import Absent, OnnxModel, Provenance, Recipe, Sequence, Tensor, TestCase, Tolerance, Value
from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING

NUMERIC = tuple(sorted(CARRIERS))
FLOATING = ("float16", "float32", "float64", "complex64", "complex128")
INTEGRAL = tuple(name for name in NUMERIC if np.dtype(CARRIERS[name]).kind in "iu" and name not in RAW_DTYPES)

names = st.text(max_size=8)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def numeric_tensors(draw: st.DrawFn, dtypes: tuple[str, ...] = NUMERIC, min_dim: int = 0) -> Tensor:
    """Tensors of any bits at all, NaN with payloads included; bools are 0 and 1."""
    dtype = draw(st.sampled_from(dtypes))
    shape = tuple(draw(st.lists(st.integers(min_dim, 4), max_size=3)))
    size = int(np.prod(shape, dtype=int)) * np.dtype(CARRIERS[dtype]).itemsize
    data = draw(st.binary(min_size=size, max_size=size))
    return Tensor(dtype, shape, bytes(byte & 1 for byte in data) if dtype == "bool" else data)


@st.composite
def string_tensors(draw: st.DrawFn) -> Tensor:
    """Tensors of strings."""
    shape = draw(shapes)
    count = int(np.prod(shape, dtype=int))
    items: list[str] = draw(st.lists(names, min_size=count, max_size=count))
    flat: np.ndarray[Any, Any] = np.empty(count, dtype=object)
    flat[:] = items
    return Tensor.of(flat.reshape(shape)) if count else Tensor(STRING, shape, b"[]")


tensors = st.one_of(numeric_tensors(), string_tensors())
values: st.SearchStrategy[Value] = st.one_of(
    tensors, st.lists(tensors, max_size=3).map(lambda items: Sequence(tuple(items))), st.just(Absent())
)

seeds = st.integers(0, 2**64 - 1)
uniform_recipes = st.builds(
    lambda dtype, shape, low, width, seed: Recipe("uniform", dtype, shape, low, low + width, seed),
    st.sampled_from(FLOATING),
    shapes,
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
    seeds,
)
integer_recipes = st.builds(
    lambda dtype, shape, low, width, seed: Recipe("integers", dtype, shape, low, low + width, seed),
    st.sampled_from((*FLOATING, *INTEGRAL)),
    shapes,
    st.integers(0, 50),
    st.integers(0, 50),
    seeds,
)
other_recipes = st.builds(
    Recipe,
    kind=st.sampled_from(("normal", "constant")),
    dtype=st.sampled_from(FLOATING),
    shape=shapes,
    low=st.floats(-1e6, 1e6),
    high=st.floats(-1e6, 1e6),
    seed=seeds,
)
recipes = uniform_recipes | integer_recipes | other_recipes

provenances = st.builds(
    Provenance,
    source=names,
    test=names,
    operator=names,
    library=names,
    version=names,
    seed=st.none() | st.integers(),
)
tolerances = st.builds(Tolerance, st.floats(0, allow_infinity=False), st.floats(0, allow_infinity=False))


@st.composite
def cases(draw: st.DrawFn) -> TestCase:
    """Cases of any content; their programs are bytes, not models."""
    given = draw(st.lists(names, max_size=3, unique=True))
    return TestCase(
        program=OnnxModel(draw(st.binary(min_size=1, max_size=40))),
        inputs=tuple((name, draw(values | recipes)) for name in given),
        provenance=draw(provenances),
        expected=draw(st.none() | st.lists(st.tuples(names, values), max_size=2).map(tuple)),
        tolerance=draw(st.none() | tolerances),
        comparison=draw(st.sampled_from(("values", "shapes"))),
    )
