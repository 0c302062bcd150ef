"""Binding a call to a signature, and spelling it again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import Argument, Dtype, TensorArg
from fuzzing.generate.deeprel.signatures import ANY, Parameter, Signature, argument_types

X, Y = TensorArg("x"), TensorArg("y")


def parameter(name: str, *types: str, optional: bool = False, keyword: bool = False) -> Parameter:
    return Parameter(name, frozenset(types or {ANY}), optional, keyword)


AMAX = Signature(
    (
        parameter("input", "tensor"),
        parameter("dim", "int", "ints", optional=True),
        parameter("keepdim", "bool", optional=True),
        parameter("dtype", "dtype", "none", optional=True, keyword=True),
    )
)
PERMUTE = Signature((parameter("self", "tensor"), parameter("dims", "ints")))
POOL = Signature(
    (parameter("input"), parameter("size", "int", "ints"), parameter("stride", "int", optional=True))
)
MESHGRID = Signature(
    (Parameter("tensors", frozenset({ANY}), variadic=True), parameter("indexing", "str", keyword=True))
)


@pytest.mark.parametrize(
    ("signature", "args", "kwargs", "bound"),
    [
        (AMAX, (X, 1), {}, {"input": X, "dim": 1}),
        (AMAX, (X,), {"keepdim": True, "dim": (0, 1)}, {"input": X, "dim": (0, 1), "keepdim": True}),
        (AMAX, (X,), {"axis": 1, "keepdims": True}, {"input": X, "dim": 1, "keepdim": True}),
        (AMAX, (X, 0, True, Dtype("float32")), {}, None),  # a keyword by position
        (AMAX, (), {"dim": 1}, None),
        (AMAX, (X, "sum"), {}, None),
        (AMAX, (X,), {"unknown": 1}, None),
        (AMAX, (X, 1), {"dim": 1}, None),
        (PERMUTE, (X, 0, 2, 1), {}, {"self": X, "dims": (0, 2, 1)}),
        (PERMUTE, (X, (0, 2, 1)), {}, {"self": X, "dims": (0, 2, 1)}),
        (PERMUTE, (X, 0), {}, {"self": X, "dims": (0,)}),
        (POOL, (X, 2, 1), {}, {"input": X, "size": 2, "stride": 1}),  # no list of (2, 1)
        (MESHGRID, (X, Y), {"indexing": "ij"}, {"tensors": (X, Y), "indexing": "ij"}),
    ],
)
def test_binding(
    signature: Signature,
    args: tuple[Argument, ...],
    kwargs: dict[str, Argument],
    bound: dict[str, Argument] | None,
) -> None:
    assert signature.bind(args, kwargs) == bound


@st.composite
def signatures(draw: st.DrawFn) -> tuple[Signature, dict[str, Argument]]:
    """A signature as Python allows it, and arguments that fit it."""
    count = draw(st.integers(1, 6))
    keywords_from = draw(st.integers(0, count))
    optional_from = draw(st.integers(0, count))
    values = {"tensor": st.just(X), "int": st.integers(-5, 5), "bool": st.booleans(), "str": st.just("mean")}
    found, bound = [], {}
    for place in range(count):
        kind = draw(st.sampled_from(sorted(values)))
        optional = place >= optional_from
        found.append(parameter(f"p{place}", kind, optional=optional, keyword=place >= keywords_from))
        if not optional or draw(st.booleans()):
            bound[f"p{place}"] = draw(values[kind])
    return Signature(tuple(found)), bound


@given(signatures())
def test_arranging_is_the_inverse_of_binding(drawn: tuple[Signature, dict[str, Argument]]) -> None:
    signature, bound = drawn
    args, kwargs = signature.unbind(bound)
    assert signature.bind(args, dict(kwargs)) == bound


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (X, {"tensor"}),
        (True, {"bool"}),
        ([X, Y], {"tensors"}),
        ((1, 2), {"ints"}),
        ([1, 2.0], {"floats"}),
        ((X, None), {"tensors"}),
        ((None, None), {"ints"}),  # a size that stays as it is
        ([X, 1], set()),
        ({"a": 1}, set()),
        (None, {"none"}),
    ],
)
def test_kinds(value: Argument, kinds: set[str]) -> None:
    assert argument_types(value) == kinds


def test_numbers_widen_but_do_not_narrow() -> None:
    assert parameter("p", "float").accepts(1)
    assert not parameter("p", "int").accepts(1.5)
    assert parameter("p", "floats").accepts([1, 2])
    assert parameter("p", "ints").accepts([])
    assert parameter("p", "device").accepts("cpu")
