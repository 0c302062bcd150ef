"""Expressions compute what Python computes, exactly, and nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import Recipe
from fuzzing.generate.docter.expressions import (
    ExpressionError,
    UnboundError,
    evaluate,
    is_expression,
    names_in,
)

_TENSOR = Recipe("constant", "float32", (2, 3, 4), 0, 0, 0)

_numbers = st.integers(-9, 9)
_texts = st.recursive(
    st.sampled_from(["a", "b", "c"]) | _numbers.map(str),
    lambda inner: st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from("+-*"), inner),
    max_leaves=8,
)


@given(_texts, st.fixed_dictionaries({"a": _numbers, "b": _numbers, "c": _numbers}))
def test_arithmetic_is_pythons(text: str, scope: dict[str, int]) -> None:
    assert evaluate(text, scope) == eval(text, dict(scope))


@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_division_is_exact(above: int, below: int) -> None:
    value = evaluate("a / b", {"a": above, "b": below})
    assert value == Fraction(above, below)
    assert isinstance(value, int) == (above % below == 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-max(ndim(input), 1)", -3),
        ("size(input, -1)", 4),
        ("numel(input)", 24),
        ("kernel[0] + kernel[1]", 8),  # one number stands for all that are asked for
        ("pads[1]", 2),
        ("floor(7 / 2)", 3),
        ("prod(pads) if flag else 0", 2),
        ("length(pads)", 2),
        ("length(kernel)", 1),
        ("0 <= kernel < 4", False),
        ("flag and not kernel == 3", True),
        ("given(kernel) and not given(absent)", True),
    ],
)
def test_functions(text: str, value: object) -> None:
    scope: dict[str, Any] = {"input": _TENSOR, "kernel": 4, "pads": [1, 2], "flag": True}
    assert evaluate(text, scope) == value


def test_what_has_no_value_is_told_by_name() -> None:
    with pytest.raises(UnboundError, match=r"^groups$"):
        evaluate("channels / groups", {"channels": 3})


@pytest.mark.parametrize(
    "text", ["a / b", "size(a, 0) + a[0:1]", "__import__('os')", "a.b", "[1, 2]", "lambda: 1"]
)
def test_what_cannot_be_computed_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"a": 1, "b": 0})


def test_names_are_those_of_values_not_of_functions() -> None:
    assert names_in("floor(size(input, dim) / groups)") == {"input", "dim", "groups"}
    assert not is_expression("one of the two")
