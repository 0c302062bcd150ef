"""Arithmetic on two tensors, and what all operators share that broadcast their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import MODEST, Interval, cut, hull, modest, multiply, whole
from fuzzing.graph.operator import LEAD, Data, Operator, Setting, Torch
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.rounding import STEP, rounded, share
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, NUMBERS, UNSIGNED, Dim, Shape, TensorType

#: How often the second input is of another shape. Seldom: then it is hardly ever an edge of the graph.
_BROADCAST = 0.05

#: How often such a shape has more elements than the lead input's, and not fewer.
_GROWN = 0.3


def broadcast(*shapes: Shape) -> Shape:
    """The shape that tensors of these shapes have together (ONNX, "Broadcasting in ONNX").

    A length that only the data tell stays one, unless another tensor's is known and not 1.
    """
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple([_together(dims) for dims in zip(*padded, strict=True)])


def _together(dims: tuple[Dim, ...]) -> Dim:
    known = [dim for dim in dims if dim not in (1, None)]
    return known[0] if known else None if None in dims else 1


def together(site: Site) -> tuple[TensorType, ...]:
    """The shape function: all inputs broadcast, of the lead input's element type."""
    shapes = []
    for type_ in site.types:
        if type_ is not None:
            if type_.shape is None:
                return (TensorType(site.dtype, None),)
            shapes.append(type_.shape)
    return (TensorType(site.dtype, broadcast(*shapes)),)


def partner(site: Site) -> Shape:
    """A shape that broadcasts to the lead input's: mostly the same, else some lengths 1, or fewer of them."""
    if site.draws.chance(_BROADCAST):
        return _shrunk(site, site.shape)
    return _known(site.shape)


def companion(site: Site) -> Shape:
    """A shape that broadcasts with the inputs chosen so far, which may have to give way: mostly the same."""
    shapes = [type_.shape or () for type_ in site.types if type_ is not None]
    shape = shapes[0] if len(shapes) == 1 else broadcast(*shapes)
    if not site.draws.chance(_BROADCAST):
        return _known(shape)
    if None not in shape and site.draws.chance(_GROWN):
        return _grown(site, [dim or 0 for dim in shape])
    return _shrunk(site, shape)


def _known(shape: Shape) -> Shape:
    """A length that only the data tell goes with 1 for certain."""
    return tuple([1 if dim is None else dim for dim in shape]) if None in shape else shape


def _shrunk(site: Site, shape: Shape) -> Shape:
    draws = site.draws
    kept = [1 if dim is None or draws.chance(0.5) else dim for dim in shape]
    return tuple(kept[draws.below(len(shape)) :])


def _grown(site: Site, lengths: list[int]) -> Shape:
    """Longer where the length is 1, and further lengths in front, within what the limits leave."""
    draws, limits = site.draws, site.limits
    further = draws.between(0, max(0, limits.max_rank - len(lengths)))
    lengths = [1] * further + lengths
    room = limits.max_elements // max(1, math.prod(lengths))
    for axis, length in enumerate(lengths):
        if length == 1 and room > 1:
            lengths[axis] = draws.between(1, min(limits.max_dim, room))
            room //= lengths[axis]
    return tuple(lengths)


def broadcasting(
    name: str,
    forms: dict[int, tuple[str, ...]],
    values: Callable[[Site], Interval],
    torch: Torch | None,
    *,
    within: Callable[[TensorType], Interval] = modest,
    second: Callable[[Site], Interval] | None = None,
    shape: Callable[[Site], Shape] = companion,
    degrees: tuple[int, ...] = (),
    settings: tuple[Setting, ...] = (),
    plan: Callable[[Site], object] | None = None,
) -> None:
    """Registers an operator on tensors that broadcast, in each of its forms: since when, for which types."""
    for since, dtypes in forms.items():
        register(
            Operator(
                name,
                since,
                slots=(LEAD, Data(shape, within=second)),
                degrees=degrees,
                infer=together,
                values=values,
                within=within,
                dtypes=dtypes,
                empty=True,
                dynamic=True,
                settings=settings,
                plan=plan,
                torch=torch,
            )
        )


def total(intervals: Sequence[Interval], dtype: str) -> Interval:
    """Bounds on a sum; what may cancel is off by a share of what is added."""
    low, high = sum(item.low for item in intervals), sum(item.high for item in intervals)
    if dtype not in STEP:
        return Interval(low, high)
    slack = STEP[dtype] * max(item.largest for item in intervals)
    above, below = all(item.low >= 0 for item in intervals), all(item.high <= 0 for item in intervals)
    return Interval(
        low * (1 - STEP[dtype]) if above else low - slack, high * (1 - STEP[dtype]) if below else high + slack
    )


def ranges(site: Site) -> list[Interval]:
    """The bounds on each input."""
    return [item for item in site.ranges if item is not None]


def _difference(site: Site) -> Interval:
    low, high = site.range(1)
    return total((site.range(0), Interval(-high, -low)), site.dtype)


def _subtrahend(site: Site) -> Interval:
    """Of what is unsigned no more than there is."""
    allowed = _HALF(site.x)
    return Interval(0, min(site.range(0).low, allowed.high)) if site.dtype in UNSIGNED else allowed


def _product(site: Site) -> Interval:
    return rounded(multiply(site.range(0), site.range(1)), site.dtype)


def _squared(type_: TensorType) -> Interval:
    """A product of two modest factors may be multiplied again, by a smaller one."""
    return _SQUARED[type_.dtype]


_SQUARED = {
    dtype: Interval(0 if low == 0 else -high * high, high * high) for dtype, (low, high) in MODEST.items()
}


def _factor(site: Site) -> Interval:
    """So small that the product is one of two modest factors, or no larger than the first factor."""
    bounds = modest(site.x)
    limit = max(1, min(bounds.high, _squared(site.x).high // max(site.range(0).largest, 1)))
    return Interval(0 if bounds.low == 0 else -limit, limit)


def _divisor(site: Site) -> Interval:
    """Of one sign, mostly positive, and so far from zero that the quotient fits."""
    high = whole(site.x).high
    low: float = 1
    if site.dtype in FLOATS:
        low = max(1e-2, 4 * site.range(0).largest / high)
    return signed(site, low, high)


def signed(site: Site, low: float, high: float) -> Interval:
    """Numbers of one sign, mostly positive: what is divided by."""
    if site.dtype not in UNSIGNED and site.draws.chance(0.1):
        return Interval(-high, -low)
    return Interval(low, high)


def _quotient(site: Site) -> Interval:
    a, b = site.range(0), site.range(1)
    if site.dtype in FLOATS:
        return rounded(multiply(a, Interval(1 / b.high, 1 / b.low)), site.dtype)
    # Of integers towards zero: what Python's // does to magnitudes.
    corners = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return Interval(min(corners), max(corners))


def _quotient_text(site: Site, names: Sequence[str]) -> str:
    rounding = "" if site.dtype in FLOATS else ", rounding_mode='trunc'"
    return f"torch.div({names[0]}, {names[1]}{rounding})"


def _slope(site: Site) -> Interval:
    below = site.range(0).low < 0
    sloped = [multiply(cut(site.range(0), Interval(-math.inf, 0)), site.range(1))] if below else []
    above = site.range(0).high >= 0
    kept = [cut(site.range(0), Interval(0, math.inf))] if above else []
    return rounded(hull(sloped + kept), site.dtype)


_HALF = share(2)
_SHORT_NUMBERS = (*FLOATS, "int32", "int64", "uint32", "uint64")
_WIDENING = {13: _SHORT_NUMBERS, 14: NUMBERS}

broadcasting(
    "Add",
    _WIDENING,
    lambda site: total(ranges(site), site.dtype),
    "torch.add({0}, {1})",
    within=_HALF,
    second=lambda site: _HALF(site.x),
)
broadcasting("Sub", _WIDENING, _difference, "torch.sub({0}, {1})", within=_HALF, second=_subtrahend)
broadcasting("Mul", _WIDENING, _product, "torch.mul({0}, {1})", within=_squared, second=_factor)
broadcasting("Div", _WIDENING, _quotient, _quotient_text, within=share(4), second=_divisor)
# The slope broadcasts to the first input, never the other way.
broadcasting(
    "PRelu",
    {9: (*PLAIN, *_SHORT_NUMBERS[4:]), 16: _SHORT_NUMBERS},
    _slope,
    lambda site, names: "torch.where({0} < 0, {0} * {1}, {0})".format(*names),
    within=_squared,
    second=_factor,
    shape=partner,
)
