"""Attention as exporters spell it out in simpler operators."""

from __future__ import annotations

import math

from fuzzing.graph.constants import make_constant
from fuzzing.graph.intervals import Interval, widen, within
from fuzzing.graph.ir import Builder, Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    ConstantInput,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register_pattern
from fuzzing.graph.operators.pattern_builder import PatternBuilder
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import total
from fuzzing.graph.types import Shape
from fuzzing.rng import Rng

_MODERATE = within(-10, 10)
#: What causal masks add to the scores of what lies ahead; float16 holds it.
_AHEAD = -1e4
#: Scores grow with the square of a sequence, which is no output that limits would bound.
_LONGEST = 64


def _attend(
    make: PatternBuilder, query: int, key: int, value: int, rank: int, size: int, mask: int | None
) -> int:
    """softmax(q·kᵀ/√size + mask)·v over the last two axes."""
    last = (*range(rank - 2), rank - 1, rank - 2)
    scores = make.node("MatMul", query, make.node("Transpose", key, perm=last))
    scaled = make.node("Mul", scores, make.number(1 / math.sqrt(size)))
    if mask is not None:
        scaled = make.node("Add", scaled, mask)
    return make.node("MatMul", make.node("Softmax", scaled, axis=-1), value)


def _scaled(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    query, key, value, *mask = [edge for edge in context.edges if edge is not None]
    make = PatternBuilder(builder, context.dtype)
    size = context.dims(0)[-1]
    return (_attend(make, query, key, value, context.rank, size, mask[0] if mask else None),)


def _queries(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    most = max(1, min(limits.max_dim, _LONGEST))
    return tuple([rng.between(1, most) for _ in range(rng.between(2, max(2, min(5, limits.max_rank))))])


def _keys(context: NodeContext) -> Shape:
    return context.shape


def _causal(context: NodeContext) -> Constant:
    length = context.dims(0)[-2]
    return make_constant(
        context.dtype,
        [_AHEAD if column > row else 0.0 for row in range(length) for column in range(length)],
        (length, length),
    )


def _sequences(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    most = max(1, min(limits.max_dim, _LONGEST))
    heads = rng.between(1, 2)
    return rng.between(1, most), rng.between(1, most), heads * rng.between(1, max(1, most // heads))


def _heads(context: NodeContext) -> int:
    size = context.dims(0)[2]
    heads = context.rng.between(1, 4)
    return heads if size % heads == 0 else 1


def _many(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """Multi-head attention with projections."""
    x, *projections, out = [edge for edge in context.edges if edge is not None]
    make = PatternBuilder(builder, context.dtype)
    batch, length, size = context.dims(0)
    heads = context.plan
    apart = make.integers(batch, length, heads, size // heads)
    parts = []
    for weight in projections:
        split = make.node("Reshape", make.node("MatMul", x, weight), apart)
        parts.append(make.node("Transpose", split, perm=(0, 2, 1, 3)))
    query, key, value = parts
    attended = _attend(make, query, key, value, 4, size // heads, None)
    together = make.node("Transpose", attended, perm=(0, 2, 1, 3))
    joined = make.node("Reshape", together, make.integers(batch, length, size))
    return (make.node("MatMul", joined, out),)


def _projection(context: NodeContext) -> Shape:
    return (context.shape[2], context.shape[2])


def _project_within(context: NodeContext) -> Interval:
    """Keeps projections within 10 if the input is."""
    most = 1.0 / max(1, context.dims(0)[2])
    return Interval(-most, most)


def _many_values(context: NodeContext) -> Interval:
    size = context.dims(0)[2]
    value = total(context.dtype, size, context.range(0), context.range(3))
    return total(context.dtype, size, widen(value, 1e-3), context.range(4))


register_pattern(
    OperatorSpec("pattern.Attention", 13, dtypes=NARROW, ranks=(2, 3, 4, 5), within=_MODERATE, expand=_scaled,
             input_specs=(PRIMARY_INPUT, DataInput(_keys, within=lambda context: _MODERATE(context.x)),
                    DataInput(_keys, within=lambda context: _MODERATE(context.x)), ConstantInput(_causal)),
             degrees=(3, 4), values=lambda context: widen(context.range(2), 1e-2),
             takes=lambda shape: shape[-2] <= _LONGEST, draw_shape=_queries),
    OperatorSpec("pattern.MultiHeadAttention", 13, dtypes=NARROW, ranks=(3,), within=_MODERATE,
                 draw_shape=_sequences, takes=lambda shape: max(shape[1:]) <= _LONGEST, plan=_heads,
                 expand=_many,
                 input_specs=(PRIMARY_INPUT, *(DataInput(_projection, within=_project_within),) * 4),
                 values=_many_values),
)  # fmt: skip
