"""Attention and rotary embedding.

Outputs of attention are means of values weighted by a softmax, so they lie in the values' range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.attribute_domains import Choice, Computed, planned_attribute
from fuzzing.graph.constants import make_constant
from fuzzing.graph.intervals import Interval, add, hull, multiply, widen, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sum_bounds import max_output_elements
from fuzzing.graph.types import Shape, TensorType
from fuzzing.rng import Rng

_UNIT = Interval(-1, 1)
_MODERATE = within(-30, 30)  # so that products of rows stay where float16 distinguishes them


def _moderate(context: NodeContext) -> Interval:
    return _MODERATE(context.x)


# Attention
class _Heads(NamedTuple):
    """The layout of the inputs.

    heads, keys   number of query heads; of key and value heads: as many, or fewer
    length, past  sequence lengths of keys and values; of the past ones, 0 if none
    size, wide    the head size of queries and keys; of values
    """

    heads: int
    keys: int
    length: int
    past: int
    size: int
    wide: int


def _lay_out(context: NodeContext) -> _Heads:
    rng, shape, most = context.rng, context.dims(0), max(1, context.limits.max_dim)
    batch, queries = shape[0], shape[-2]
    if len(shape) == 4:
        heads, size = shape[1], shape[3]
    else:
        heads = _divisor(rng, shape[2])
        size = shape[2] // heads
    keys = heads if rng.chance(0.6) else _divisor(rng, heads)
    if len(shape) == 3:
        context.attributes["q_num_heads"], context.attributes["kv_num_heads"] = heads, keys
    # Outputs on request: the weights, one for each query and key, and keys and values with those before.
    left = max_output_elements(context) // (batch * heads)
    most = max(1, min(most, left // (2 * max(queries, size))))
    # Keys that follow a past are mostly as many as the queries: then a causal diagonal is certain.
    alike = context.degree > 5 and queries <= most and rng.chance(0.7)
    length = queries if alike else rng.between(1, most)
    wide = size if rng.chance(0.7) else rng.between(1, size)
    past = rng.between(1, most) if context.degree > 5 else 0
    # Where there is a past, the reference wants what is present to be given too.
    if past or (rng.chance(0.2) and length * size <= left):
        context.outputs = rng.between(3, 4) if (past + length) * queries <= left else 3
    return _Heads(heads, keys, length, past, size, wide)


def _divisor(rng: Rng, number: int) -> int:
    some = 1 + rng.below(min(number, 4))
    return some if number % some == 0 else 1


def _key(context: NodeContext, size: int) -> Shape:
    heads: _Heads = context.plan
    batch = context.dims(0)[0]
    if context.rank == 4:
        return (batch, heads.keys, heads.length, size)
    return (batch, heads.length, heads.keys * size)


def _past(context: NodeContext, size: int) -> Shape:
    heads: _Heads = context.plan
    return (context.dims(0)[0], heads.keys, heads.past, size)


def _mask(context: NodeContext) -> Constant:
    """Which keys each query may see, or what is added to their scores; the first is visible to all."""
    rng, heads = context.rng, context.plan
    rows, columns = context.dims(0)[-2], heads.past + heads.length
    shape: tuple[int, ...] = (rows, columns)
    if rng.chance(0.3):
        shape = (*rng.choice(((1,), (1, 1), (1, heads.heads), (context.dims(0)[0], heads.heads))), *shape)
    count = math.prod(shape)
    if rng.chance(0.5):
        return make_constant("bool", [n % columns == 0 or rng.chance(0.7) for n in range(count)], shape)
    return make_constant(context.dtype, [rng.choice((0.0, 0.0, -1.0, 0.5)) for _ in range(count)], shape)


def _sizes(context: NodeContext) -> tuple[int, int, int, int, int, int]:
    """Query heads, key heads, queries, keys, and the head sizes of keys and values."""
    query, key, value = context.dims(0), context.dims(1), context.dims(2)
    if len(query) == 4:
        heads, others, size, wide = query[1], key[1], query[3], value[3]
    else:
        heads, others = context.get("q_num_heads"), context.get("kv_num_heads")
        size, wide = query[2] // heads, value[2] // others
    past = context.dims(4)[2] if context.given(4) else 0
    return heads, others, query[-2], key[-2] + past, size, wide


def _attention(context: NodeContext) -> tuple[TensorType, ...]:
    heads, others, queries, keys, size, wide = _sizes(context)
    batch = context.dims(0)[0]
    out = (batch, heads, queries, wide) if context.rank == 4 else (batch, queries, heads * wide)
    second = context.type(2).dtype
    return (
        TensorType(context.dtype, out),
        TensorType(context.dtype, (batch, others, keys, size)),
        TensorType(second, (batch, others, keys, wide)),
        TensorType(context.dtype, (batch, heads, queries, keys)),
    )[: context.outputs]


def _attention_values(context: NodeContext) -> tuple[Interval, ...]:
    size = _sizes(context)[4]
    keys, values = context.range(1), context.range(2)
    if context.given(4):
        keys, values = hull((keys, context.range(4))), hull((values, context.range(5)))
    scale = context.get("scale") or 1 / math.sqrt(size)
    score = max(1.0, size * context.range(0).largest * keys.largest * scale + 1)  # a mask adds at most 1
    return (widen(values, 1e-3), keys, values, widen(Interval(-score, score), 1e-2))[: context.outputs]


def _split_heads(name: str, context: NodeContext, heads: int) -> str:
    return name if context.rank == 4 else f"{name}.unflatten(2, ({heads}, -1)).transpose(1, 2)"


def _torch_attention(context: NodeContext, names: Sequence[str]) -> str:
    """By torch's own function; spelled out with a soft cap, which that function lacks."""
    heads, others, queries, keys, size, _ = _sizes(context)
    scale = context.get("scale") or 1 / math.sqrt(size)
    query = _split_heads(names[0], context, heads)
    presents = [_split_heads(name, context, others) for name in names[1:3]]
    if context.given(4):
        presents = [f"torch.cat(({past}, {now}), 2)" for past, now in zip(names[4:6], presents, strict=True)]
    key, value = (f"{name}.repeat_interleave({heads // others}, 1)" for name in presents)
    bias = _torch_mask(context, names, queries, keys)
    scores = f"{scale!r} * ({query} @ {key}.mT)"
    if context.get("softcap"):
        capped = f"{context.get('softcap')!r} * torch.tanh({scores} / {context.get('softcap')!r})"
        text = f"torch.softmax({capped if bias is None else f'{capped} + {bias}'}, -1) @ {value}"
    else:
        text = (
            f"torch.nn.functional.scaled_dot_product_attention({query}, {key}, {value}, "
            f"attn_mask={bias}, scale={scale!r})"
        )
    if context.rank == 3:
        text = f"({text}).transpose(1, 2).flatten(2)"
    every = [text, *presents, scores][: context.outputs]
    return every[0] if len(every) == 1 else f"({', '.join(every)})"


def _torch_mask(context: NodeContext, names: Sequence[str], queries: int, keys: int) -> str | None:
    """The score bias: minus infinity where the mask or causality hides a key."""
    bias = None
    if context.given(3):
        dark = f"torch.where({names[3]}, 0.0, -float('inf')).to({names[0]}.dtype)"
        bias = dark if context.type(3).dtype == "bool" else names[3]
    if context.get("is_causal"):
        past = context.dims(4)[2] if context.given(4) else 0
        ahead = f"torch.full(({queries}, {keys}), -float('inf'), dtype={names[0]}.dtype).triu({past + 1})"
        bias = ahead if bias is None else f"({bias} + {ahead})"
    return bias


def _causal(context: NodeContext) -> int:
    """Not with a past and different numbers of keys and queries.

    By the operator's text the diagonal begins at the past's length; in onnxruntime 1.31 and openvino 2026.4
    it ends in the last key.
    """
    heads: _Heads = context.plan
    if heads.past and heads.length != context.dims(0)[-2]:
        return 0
    return context.rng.choice((0, 1))


def _attention_spec(since: int, *attribute_specs: AttributeSpec) -> OperatorSpec:
    return OperatorSpec(
        "Attention", since, ranks=(3, 4), within=_MODERATE, plan=_lay_out,
        input_specs=(
            PRIMARY_INPUT,
            DataInput(lambda context: _key(context, context.plan.size), within=_moderate),
            DataInput(lambda context: _key(context, context.plan.wide), within=_moderate),
            ConstantInput(_mask, omit=0.4),
            DataInput(lambda context: _past(context, context.plan.size), within=_moderate),
            DataInput(lambda context: _past(context, context.plan.wide), within=_moderate),
        ),
        degrees=(3, 4, 6),
        attribute_specs=(
            planned_attribute("q_num_heads"),
            planned_attribute("kv_num_heads"),
            AttributeSpec("is_causal", Computed(_causal, lambda value, context: value in (0, 1)), omit=0.4,
                          default=0),
            AttributeSpec("scale", Choice(0.5, 0.125), omit=0.7),
            AttributeSpec("softcap", Choice(5.0), omit=0.8, default=0.0),
            AttributeSpec("qk_matmul_output_mode", Choice(0), omit=0.9, default=0),
            *attribute_specs,
        ),
        infer=_attention, values=_attention_values, torch=_torch_attention,
    )  # fmt: skip


# RotaryEmbedding
def _draw_rotatable_shape(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    between, most = rng.between, max(1, limits.max_dim)
    size = 2 * between(1, max(1, most // 2))
    if rng.chance(0.5):
        return (between(1, most), between(1, most), between(1, most), size)
    return (between(1, most), between(1, most), size)


def _plan_rotation(context: NodeContext) -> int:
    """Draws the heads of a rank 3 tensor and how much of each is rotated; the plan is half of that."""
    rng, shape = context.rng, context.dims(0)
    size = shape[-1]
    if len(shape) == 3:
        heads = rng.choice((1, 2))
        if size % (2 * heads):
            heads = 1
        context.attributes["num_heads"] = heads
        size //= heads
    if rng.chance(0.3):
        size = 2 * rng.between(1, size // 2)
        context.attributes["rotary_embedding_dim"] = size
    elif rng.chance(0.2):
        context.attributes["rotary_embedding_dim"] = 0
    return size // 2


def _cache(context: NodeContext) -> Shape:
    """One row per position, if positions are given; else also one per element of the batch."""
    shape = context.dims(0)
    steps = shape[-2]
    return (steps, context.plan) if context.degree > 3 else (shape[0], steps, context.plan)


def _positions(context: NodeContext) -> Constant:
    shape = context.dims(0)
    batch, steps = shape[0], shape[-2]
    return make_constant("int64", [context.rng.below(steps) for _ in range(batch * steps)], (batch, steps))


def _rotated(context: NodeContext) -> Interval:
    cosine, sine = multiply(context.range(0), context.range(1)), multiply(context.range(0), context.range(2))
    both = add(cosine, Interval(-max(map(abs, sine)), max(map(abs, sine))))
    return widen(hull((context.range(0), both)), 1e-2)


register(
    _attention_spec(23),
    _attention_spec(24),
    OperatorSpec("RotaryEmbedding", 23, dtypes=("float32", "float16", "bfloat16"), ranks=(3, 4),
                 draw_shape=_draw_rotatable_shape, takes=lambda shape: shape[-1] % 2 == 0,
                 plan=_plan_rotation,
                 input_specs=(PRIMARY_INPUT, DataInput(_cache, within=lambda context: _UNIT),
                              DataInput(_cache, within=lambda context: _UNIT), ConstantInput(_positions)),
                 degrees=(3, 4),
                 attribute_specs=(planned_attribute("num_heads"),
                                  planned_attribute("rotary_embedding_dim", 0),
                                  AttributeSpec("interleaved", Choice(0, 1), omit=0.5, default=0)),
                 values=_rotated),
)  # fmt: skip
