"""Attention, spelled out in the operators that exporters spell it out in."""

from __future__ import annotations

import math

from fuzzing.draws import Draws
from fuzzing.graph.intervals import Interval, widen, within
from fuzzing.graph.ir import Builder, Constant
from fuzzing.graph.literals import literal
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator
from fuzzing.graph.operators import register_pattern
from fuzzing.graph.operators.sketch import Sketch
from fuzzing.graph.operators.sums import total
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import Shape

_MODERATE = within(-10, 10)
#: What causal masks add to the scores of what lies ahead; float16 holds it.
_AHEAD = -1e4
#: Scores grow with the square of a sequence, which is no output that limits would bound.
_LONGEST = 64


def _attend(make: Sketch, query: int, key: int, value: int, rank: int, size: int, mask: int | None) -> int:
    """softmax(q·kᵀ/√size + mask)·v over the last two axes."""
    last = (*range(rank - 2), rank - 1, rank - 2)
    scores = make.node("MatMul", query, make.node("Transpose", key, perm=last))
    scaled = make.node("Mul", scores, make.number(1 / math.sqrt(size)))
    if mask is not None:
        scaled = make.node("Add", scaled, mask)
    return make.node("MatMul", make.node("Softmax", scaled, axis=-1), value)


# --- of three inputs --------------------------------------------------------------------------------------


def _scaled(builder: Builder, site: Site) -> tuple[int, ...]:
    query, key, value, *mask = [edge for edge in site.edges if edge is not None]
    make = Sketch(builder, site.dtype)
    size = site.dims(0)[-1]
    return (_attend(make, query, key, value, site.rank, size, mask[0] if mask else None),)


def _queries(draws: Draws, limits: Limits) -> tuple[int, ...]:
    most = max(1, min(limits.max_dim, _LONGEST))
    return tuple([draws.between(1, most) for _ in range(draws.between(2, max(2, min(5, limits.max_rank))))])


def _keys(site: Site) -> Shape:
    """As many keys as queries."""
    return site.shape


def _causal(site: Site) -> Constant:
    length = site.dims(0)[-2]
    return literal(
        site.dtype,
        [_AHEAD if column > row else 0.0 for row in range(length) for column in range(length)],
        (length, length),
    )


# --- of many heads ----------------------------------------------------------------------------------------


def _sequences(draws: Draws, limits: Limits) -> tuple[int, ...]:
    """Batch, length, and a size of several heads."""
    most = max(1, min(limits.max_dim, _LONGEST))
    heads = draws.between(1, 2)
    return draws.between(1, most), draws.between(1, most), heads * draws.between(1, max(1, most // heads))


def _heads(site: Site) -> int:
    size = site.dims(0)[2]
    heads = site.draws.between(1, 4)
    return heads if size % heads == 0 else 1


def _many(builder: Builder, site: Site) -> tuple[int, ...]:
    """Projections, split into heads, attended to one by one, joined and projected."""
    x, *projections, out = [edge for edge in site.edges if edge is not None]
    make = Sketch(builder, site.dtype)
    batch, length, size = site.dims(0)
    heads = site.plan
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


def _projection(site: Site) -> Shape:
    return (site.shape[2], site.shape[2])


def _project_within(site: Site) -> Interval:
    """So that what is projected stays within 10 where the input does."""
    most = 1.0 / max(1, site.dims(0)[2])
    return Interval(-most, most)


def _many_values(site: Site) -> Interval:
    size = site.dims(0)[2]
    value = total(site.dtype, size, site.range(0), site.range(3))
    return total(site.dtype, size, widen(value, 1e-3), site.range(4))


register_pattern(
    Operator("pattern.Attention", 13, dtypes=NARROW, ranks=(2, 3, 4, 5), within=_MODERATE, expand=_scaled,
             slots=(LEAD, Data(_keys, within=lambda site: _MODERATE(site.x)),
                    Data(_keys, within=lambda site: _MODERATE(site.x)), Auxiliary(_causal)),
             degrees=(3, 4), values=lambda site: widen(site.range(2), 1e-2),
             takes=lambda shape: shape[-2] <= _LONGEST, fresh=_queries),
    Operator("pattern.MultiHeadAttention", 13, dtypes=NARROW, ranks=(3,), within=_MODERATE, fresh=_sequences,
             takes=lambda shape: max(shape[1:]) <= _LONGEST, plan=_heads, expand=_many,
             slots=(LEAD, *(Data(_projection, within=_project_within),) * 4), values=_many_values),
)  # fmt: skip
