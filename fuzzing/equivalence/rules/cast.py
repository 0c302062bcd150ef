"""Rule 12: an operator computes the same for whole numbers in another type that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: Operators on numbers in [-8, 8] whose results, too, fit into int8.
_BINARY = (
    "fmod", "remainder", "add", "sub", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "isclose",
    "floor_divide", "mul",
)  # fmt: skip
_UNARY = (
    "abs",
    "neg",
    "sign",
    "square",
    "sum",
    "amax",
    "amin",
    "argmax",
    "cumsum",
    "sort",
    "clamp_min",
    "flip",
)
_INTEGERS = ("gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "cumsum": {"dim": 0},
    "clamp_min": {"min": -2},
    "flip": {"dims": [0]},
    "sort": {"stable": True},
}
_PAIRS = (
    ("int8", "int16"),
    ("int16", "int64"),
    ("int32", "float32"),
    ("int64", "float64"),
    ("float32", "float64"),
)


def _apis() -> tuple[str, ...]:
    return tuple(f"torch.{name}" for name in (*_BINARY, *_UNARY, *_INTEGERS))


def _draw(api: str, rng: Rng) -> TestCase:
    name = api.removeprefix("torch.")
    pairs = _PAIRS[:2] if name in _INTEGERS else _PAIRS
    dtype = rng.choice(pairs)[0]
    shape = draws.lengths(rng, 2, 1, 6)
    inputs = {"input": draws.integers(rng, shape, dtype, -8, 8)}
    if name in _BINARY or (name in _INTEGERS and name != "bitwise_not"):
        # No zeros: a division of integers by zero raises, that of floats does not.
        inputs["other"] = draws.integers(rng, shape, dtype, *rng.choice(((-8, -1), (1, 8))))
    return draws.call_case(api, inputs, _SETTINGS.get(name, {}))


@register_rule("cast", number=12, equation="f(cast(i, X)) = f(cast(i, Y))", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """Both results as float64: whole numbers up to 64 and their sums are exact in each type."""
    first = subject.tensors.get("input")
    other = next((wide for narrow, wide in _PAIRS if first is not None and narrow == first.dtype), "")
    if not other or subject.api not in _apis():
        return None
    wide = f"[r.to(torch.float64) for r in torch.utils._pytree.tree_leaves({subject.expression})]"
    casts = [f"{name} = {name}.to(torch.{other})" for name in subject.names]
    return Sides(subject.program(wide), subject.program(wide, casts))
