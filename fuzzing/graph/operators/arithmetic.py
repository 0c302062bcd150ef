"""Binary arithmetic, and helpers for all operators that broadcast their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import (
    MODERATE_RANGES,
    Interval,
    full_range,
    hull,
    intersect,
    moderate_range,
    multiply,
)
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    DataInput,
    NodeContext,
    OperatorSpec,
    TorchForm,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.rounding import STEP, after_rounding, share
from fuzzing.graph.types import FLOATS, NUMBERS, UNSIGNED, Dim, Shape, TensorType

#: How often the second input is of another shape. Seldom: then it is hardly ever an edge of the graph.
_BROADCAST = 0.05

#: How often such a shape has more elements than the primary input's, and not fewer.
_GROWN = 0.3


def broadcast(*shapes: Shape) -> Shape:
    """The broadcast shape of these shapes (ONNX, "Broadcasting in ONNX").

    A data-dependent length stays one, unless another tensor's is known and not 1.
    """
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple([_broadcast_length(dims) for dims in zip(*padded, strict=True)])


def _broadcast_length(dims: tuple[Dim, ...]) -> Dim:
    known = [dim for dim in dims if dim not in (1, None)]
    return known[0] if known else None if None in dims else 1


def broadcast_type(context: NodeContext) -> tuple[TensorType, ...]:
    """The shape function: all inputs broadcast, of the primary input's element type."""
    shapes = []
    for type_ in context.types:
        if type_ is not None:
            if type_.shape is None:
                return (TensorType(context.dtype, None),)
            shapes.append(type_.shape)
    return (TensorType(context.dtype, broadcast(*shapes)),)


def draw_second_shape(context: NodeContext) -> Shape:
    """A shape that broadcasts to the primary input's: mostly the same, else with some 1s, or shorter."""
    if context.rng.chance(_BROADCAST):
        return _shrunk(context, context.shape)
    return _known(context.shape)


def draw_further_shape(context: NodeContext) -> Shape:
    """A shape that broadcasts with the inputs chosen so far, mostly the same; it may enlarge the result."""
    shapes = [type_.shape or () for type_ in context.types if type_ is not None]
    shape = shapes[0] if len(shapes) == 1 else broadcast(*shapes)
    if not context.rng.chance(_BROADCAST):
        return _known(shape)
    if None not in shape and context.rng.chance(_GROWN):
        return _grown(context, [dim or 0 for dim in shape])
    return _shrunk(context, shape)


def _known(shape: Shape) -> Shape:
    """A data-dependent length certainly broadcasts only with 1."""
    return tuple([1 if dim is None else dim for dim in shape]) if None in shape else shape


def _shrunk(context: NodeContext, shape: Shape) -> Shape:
    rng = context.rng
    kept = [1 if dim is None or rng.chance(0.5) else dim for dim in shape]
    return tuple(kept[rng.below(len(shape)) :])


def _grown(context: NodeContext, lengths: list[int]) -> Shape:
    rng, limits = context.rng, context.limits
    further = rng.between(0, max(0, limits.max_rank - len(lengths)))
    lengths = [1] * further + lengths
    room = limits.max_elements // max(1, math.prod(lengths))
    for axis, length in enumerate(lengths):
        if length == 1 and room > 1:
            lengths[axis] = rng.between(1, min(limits.max_dim, room))
            room //= lengths[axis]
    return tuple(lengths)


def register_broadcasting(
    name: str,
    forms: dict[int, tuple[str, ...]],
    values: Callable[[NodeContext], Interval],
    torch: TorchForm | None,
    *,
    within: Callable[[TensorType], Interval] = moderate_range,
    second: Callable[[NodeContext], Interval] | None = None,
    shape: Callable[[NodeContext], Shape] = draw_further_shape,
    degrees: tuple[int, ...] = (),
    attribute_specs: tuple[AttributeSpec, ...] = (),
    plan: Callable[[NodeContext], object] | None = None,
) -> None:
    """Registers a broadcasting operator in each of its forms: since which opset, for which types."""
    for since, dtypes in forms.items():
        register(
            OperatorSpec(
                name,
                since,
                input_specs=(PRIMARY_INPUT, DataInput(shape, within=second)),
                degrees=degrees,
                infer=broadcast_type,
                values=values,
                within=within,
                dtypes=dtypes,
                empty=True,
                dynamic=True,
                attribute_specs=attribute_specs,
                plan=plan,
                torch=torch,
            )
        )


def total(intervals: Sequence[Interval], dtype: str) -> Interval:
    """Bounds on a sum; cancellation is off by a share of the summands."""
    low, high = sum(item.low for item in intervals), sum(item.high for item in intervals)
    if dtype not in STEP:
        return Interval(low, high)
    slack = STEP[dtype] * max(item.largest for item in intervals)
    above, below = all(item.low >= 0 for item in intervals), all(item.high <= 0 for item in intervals)
    return Interval(
        low * (1 - STEP[dtype]) if above else low - slack, high * (1 - STEP[dtype]) if below else high + slack
    )


def ranges(context: NodeContext) -> list[Interval]:
    """The bounds on each input."""
    return [item for item in context.ranges if item is not None]


def _difference(context: NodeContext) -> Interval:
    low, high = context.range(1)
    return total((context.range(0), Interval(-high, -low)), context.dtype)


def _subtrahend(context: NodeContext) -> Interval:
    """For unsigned types, at most the minuend."""
    allowed = _HALF(context.x)
    return Interval(0, min(context.range(0).low, allowed.high)) if context.dtype in UNSIGNED else allowed


def _product(context: NodeContext) -> Interval:
    return after_rounding(multiply(context.range(0), context.range(1)), context.dtype)


def _squared(type_: TensorType) -> Interval:
    return _SQUARED[type_.dtype]


_SQUARED = {
    dtype: Interval(0 if low == 0 else -high * high, high * high)
    for dtype, (low, high) in MODERATE_RANGES.items()
}


def _factor(context: NodeContext) -> Interval:
    """So small that the product is one of two moderate factors, or no larger than the first factor."""
    bounds = moderate_range(context.x)
    limit = max(1, min(bounds.high, _squared(context.x).high // max(context.range(0).largest, 1)))
    return Interval(0 if bounds.low == 0 else -limit, limit)


def _divisor(context: NodeContext) -> Interval:
    """Of one sign, mostly positive, and so far from zero that the quotient fits."""
    high = full_range(context.x).high
    low: float = 1
    if context.dtype in FLOATS:
        low = max(1e-2, 4 * context.range(0).largest / high)
    return one_signed_range(context, low, high)


def one_signed_range(context: NodeContext, low: float, high: float) -> Interval:
    """Numbers of one sign, mostly positive, for divisors."""
    if context.dtype not in UNSIGNED and context.rng.chance(0.1):
        return Interval(-high, -low)
    return Interval(low, high)


def _quotient(context: NodeContext) -> Interval:
    a, b = context.range(0), context.range(1)
    if context.dtype in FLOATS:
        return after_rounding(multiply(a, Interval(1 / b.high, 1 / b.low)), context.dtype)
    # Of integers towards zero: what Python's // does to magnitudes.
    corners = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return Interval(min(corners), max(corners))


def _quotient_text(context: NodeContext, names: Sequence[str]) -> str:
    rounding = "" if context.dtype in FLOATS else ", rounding_mode='trunc'"
    return f"torch.div({names[0]}, {names[1]}{rounding})"


def _slope(context: NodeContext) -> Interval:
    below = context.range(0).low < 0
    sloped = (
        [multiply(intersect(context.range(0), Interval(-math.inf, 0)), context.range(1))] if below else []
    )
    above = context.range(0).high >= 0
    kept = [intersect(context.range(0), Interval(0, math.inf))] if above else []
    return after_rounding(hull(sloped + kept), context.dtype)


_HALF = share(2)
_SHORT_NUMBERS = (*FLOATS, "int32", "int64", "uint32", "uint64")
_WIDENING = {13: _SHORT_NUMBERS, 14: NUMBERS}

register_broadcasting(
    "Add",
    _WIDENING,
    lambda context: total(ranges(context), context.dtype),
    "torch.add({0}, {1})",
    within=_HALF,
    second=lambda context: _HALF(context.x),
)
register_broadcasting("Sub", _WIDENING, _difference, "torch.sub({0}, {1})", within=_HALF, second=_subtrahend)
register_broadcasting("Mul", _WIDENING, _product, "torch.mul({0}, {1})", within=_squared, second=_factor)
register_broadcasting("Div", _WIDENING, _quotient, _quotient_text, within=share(4), second=_divisor)
# The slope broadcasts to the first input, never the other way.
register_broadcasting(
    "PRelu",
    {9: (*PLAIN, *_SHORT_NUMBERS[4:]), 16: _SHORT_NUMBERS},
    _slope,
    lambda context, names: "torch.where({0} < 0, {0} * {1}, {0})".format(*names),
    within=_squared,
    second=_factor,
    shape=draw_second_shape,
)
