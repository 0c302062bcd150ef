"""Attention, and the positions that go with it.

What attention gives are means of values, weighted by a softmax: they lie where the values lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.draws import Draws
from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, add, hull, multiply, widen, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sums import room
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import Shape, TensorType

_UNIT = Interval(-1, 1)
_MODERATE = within(-30, 30)  # so that products of rows stay where float16 tells them apart


def _moderate(site: Site) -> Interval:
    return _MODERATE(site.x)


# --- Attention --------------------------------------------------------------------------------------------


class _Heads(NamedTuple):
    """How the inputs are laid out.

    heads, keys   of queries; of keys and values: as many, or fewer
    length, past  of keys and values; of those that were there before, 0 if none
    size, wide    of a head's queries and keys; of its values
    """

    heads: int
    keys: int
    length: int
    past: int
    size: int
    wide: int


def _lay_out(site: Site) -> _Heads:
    draws, shape, most = site.draws, site.dims(0), max(1, site.limits.max_dim)
    batch, queries = shape[0], shape[-2]
    if len(shape) == 4:
        heads, size = shape[1], shape[3]
    else:
        heads = _divisor(draws, shape[2])
        size = shape[2] // heads
    keys = heads if draws.chance(0.6) else _divisor(draws, heads)
    if len(shape) == 3:
        site.attributes["q_num_heads"], site.attributes["kv_num_heads"] = heads, keys
    # Outputs on request: the weights, one for each query and key, and keys and values with those before.
    left = room(site) // (batch * heads)
    most = max(1, min(most, left // (2 * max(queries, size))))
    # Keys that follow a past are mostly as many as the queries: then a causal diagonal is certain.
    alike = site.degree > 5 and queries <= most and draws.chance(0.7)
    length = queries if alike else draws.between(1, most)
    wide = size if draws.chance(0.7) else draws.between(1, size)
    past = draws.between(1, most) if site.degree > 5 else 0
    # Where there is a past, the reference wants what is present to be given too.
    if past or (draws.chance(0.2) and length * size <= left):
        site.outputs = draws.between(3, 4) if (past + length) * queries <= left else 3
    return _Heads(heads, keys, length, past, size, wide)


def _divisor(draws: Draws, number: int) -> int:
    some = 1 + draws.below(min(number, 4))
    return some if number % some == 0 else 1


def _key(site: Site, size: int) -> Shape:
    heads: _Heads = site.plan
    batch = site.dims(0)[0]
    if site.rank == 4:
        return (batch, heads.keys, heads.length, size)
    return (batch, heads.length, heads.keys * size)


def _past(site: Site, size: int) -> Shape:
    heads: _Heads = site.plan
    return (site.dims(0)[0], heads.keys, heads.past, size)


def _mask(site: Site) -> Constant:
    """Which keys each query may see, or what is added to their scores; the first is seen by all."""
    draws, heads = site.draws, site.plan
    rows, columns = site.dims(0)[-2], heads.past + heads.length
    shape: tuple[int, ...] = (rows, columns)
    if draws.chance(0.3):
        shape = (*draws.choice(((1,), (1, 1), (1, heads.heads), (site.dims(0)[0], heads.heads))), *shape)
    count = math.prod(shape)
    if draws.chance(0.5):
        return literal("bool", [n % columns == 0 or draws.chance(0.7) for n in range(count)], shape)
    return literal(site.dtype, [draws.choice((0.0, 0.0, -1.0, 0.5)) for _ in range(count)], shape)


def _sizes(site: Site) -> tuple[int, int, int, int, int, int]:
    """Query heads, key heads, queries, keys, and the sizes of a head's keys and values."""
    query, key, value = site.dims(0), site.dims(1), site.dims(2)
    if len(query) == 4:
        heads, others, size, wide = query[1], key[1], query[3], value[3]
    else:
        heads, others = site.get("q_num_heads"), site.get("kv_num_heads")
        size, wide = query[2] // heads, value[2] // others
    past = site.dims(4)[2] if site.given(4) else 0
    return heads, others, query[-2], key[-2] + past, size, wide


def _attention(site: Site) -> tuple[TensorType, ...]:
    heads, others, queries, keys, size, wide = _sizes(site)
    batch = site.dims(0)[0]
    out = (batch, heads, queries, wide) if site.rank == 4 else (batch, queries, heads * wide)
    second = site.type(2).dtype
    return (
        TensorType(site.dtype, out),
        TensorType(site.dtype, (batch, others, keys, size)),
        TensorType(second, (batch, others, keys, wide)),
        TensorType(site.dtype, (batch, heads, queries, keys)),
    )[: site.outputs]


def _attention_values(site: Site) -> tuple[Interval, ...]:
    size = _sizes(site)[4]
    keys, values = site.range(1), site.range(2)
    if site.given(4):
        keys, values = hull((keys, site.range(4))), hull((values, site.range(5)))
    scale = site.get("scale") or 1 / math.sqrt(size)
    score = max(1.0, size * site.range(0).largest * keys.largest * scale + 1)  # a mask adds at most 1
    return (widen(values, 1e-3), keys, values, widen(Interval(-score, score), 1e-2))[: site.outputs]


def _apart(name: str, site: Site, heads: int) -> str:
    """An input with an axis of heads, which one of rank 3 has in its last one."""
    return name if site.rank == 4 else f"{name}.unflatten(2, ({heads}, -1)).transpose(1, 2)"


def _torch_attention(site: Site, names: Sequence[str]) -> str:
    """By torch's function for it; with a soft cap, which that lacks, spelled out."""
    heads, others, queries, keys, size, _ = _sizes(site)
    scale = site.get("scale") or 1 / math.sqrt(size)
    query = _apart(names[0], site, heads)
    presents = [_apart(name, site, others) for name in names[1:3]]
    if site.given(4):
        presents = [f"torch.cat(({past}, {now}), 2)" for past, now in zip(names[4:6], presents, strict=True)]
    key, value = (f"{name}.repeat_interleave({heads // others}, 1)" for name in presents)
    bias = _torch_mask(site, names, queries, keys)
    scores = f"{scale!r} * ({query} @ {key}.mT)"
    if site.get("softcap"):
        capped = f"{site.get('softcap')!r} * torch.tanh({scores} / {site.get('softcap')!r})"
        text = f"torch.softmax({capped if bias is None else f'{capped} + {bias}'}, -1) @ {value}"
    else:
        text = (
            f"torch.nn.functional.scaled_dot_product_attention({query}, {key}, {value}, "
            f"attn_mask={bias}, scale={scale!r})"
        )
    if site.rank == 3:
        text = f"({text}).transpose(1, 2).flatten(2)"
    every = [text, *presents, scores][: site.outputs]
    return every[0] if len(every) == 1 else f"({', '.join(every)})"


def _torch_mask(site: Site, names: Sequence[str], queries: int, keys: int) -> str | None:
    """What is added to the scores: minus infinity where a query sees no key, by the mask or by its place."""
    bias = None
    if site.given(3):
        dark = f"torch.where({names[3]}, 0.0, -float('inf')).to({names[0]}.dtype)"
        bias = dark if site.type(3).dtype == "bool" else names[3]
    if site.get("is_causal"):
        past = site.dims(4)[2] if site.given(4) else 0
        ahead = f"torch.full(({queries}, {keys}), -float('inf'), dtype={names[0]}.dtype).triu({past + 1})"
        bias = ahead if bias is None else f"({bias} + {ahead})"
    return bias


def _causal(site: Site) -> int:
    """Not where a past is followed by more or fewer keys than there are queries: by the operator's text the
    diagonal begins at the past's length, in onnxruntime 1.31 and openvino 2026.4 it ends in the last key.
    """
    heads: _Heads = site.plan
    if heads.past and heads.length != site.dims(0)[-2]:
        return 0
    return site.draws.choice((0, 1))


def _attend(since: int, *settings: Setting) -> Operator:
    return Operator(
        "Attention", since, ranks=(3, 4), within=_MODERATE, plan=_lay_out,
        slots=(
            LEAD,
            Data(lambda site: _key(site, site.plan.size), within=_moderate),
            Data(lambda site: _key(site, site.plan.wide), within=_moderate),
            Auxiliary(_mask, omit=0.4),
            Data(lambda site: _past(site, site.plan.size), within=_moderate),
            Data(lambda site: _past(site, site.plan.wide), within=_moderate),
        ),
        degrees=(3, 4, 6),
        settings=(
            planned("q_num_heads"),
            planned("kv_num_heads"),
            Setting("is_causal", Made(_causal, lambda value, site: value in (0, 1)), omit=0.4, default=0),
            Setting("scale", Choice(0.5, 0.125), omit=0.7),
            Setting("softcap", Choice(5.0), omit=0.8, default=0.0),
            Setting("qk_matmul_output_mode", Choice(0), omit=0.9, default=0),
            *settings,
        ),
        infer=_attention, values=_attention_values, torch=_torch_attention,
    )  # fmt: skip


# --- RotaryEmbedding --------------------------------------------------------------------------------------


def _turnable(draws: Draws, limits: Limits) -> tuple[int, ...]:
    """A batch of sequences of heads whose size is even."""
    between, most = draws.between, max(1, limits.max_dim)
    size = 2 * between(1, max(1, most // 2))
    if draws.chance(0.5):
        return (between(1, most), between(1, most), between(1, most), size)
    return (between(1, most), between(1, most), size)


def _turn(site: Site) -> int:
    """Draws the heads of a tensor of rank 3, and how much of each is turned: half of it is the plan."""
    draws, shape = site.draws, site.dims(0)
    size = shape[-1]
    if len(shape) == 3:
        heads = draws.choice((1, 2))
        if size % (2 * heads):
            heads = 1
        site.attributes["num_heads"] = heads
        size //= heads
    if draws.chance(0.3):
        size = 2 * draws.between(1, size // 2)
        site.attributes["rotary_embedding_dim"] = size
    elif draws.chance(0.2):
        site.attributes["rotary_embedding_dim"] = 0
    return size // 2


def _cache(site: Site) -> Shape:
    """One row for each position, where positions are given; else one for each element of the batch too."""
    shape = site.dims(0)
    steps = shape[-2]
    return (steps, site.plan) if site.degree > 3 else (shape[0], steps, site.plan)


def _positions(site: Site) -> Constant:
    shape = site.dims(0)
    batch, steps = shape[0], shape[-2]
    return literal("int64", [site.draws.below(steps) for _ in range(batch * steps)], (batch, steps))


def _turned(site: Site) -> Interval:
    cosine, sine = multiply(site.range(0), site.range(1)), multiply(site.range(0), site.range(2))
    both = add(cosine, Interval(-max(map(abs, sine)), max(map(abs, sine))))
    return widen(hull((site.range(0), both)), 1e-2)


register(
    _attend(23),
    _attend(24),
    Operator("RotaryEmbedding", 23, dtypes=("float32", "float16", "bfloat16"), ranks=(3, 4), fresh=_turnable,
             takes=lambda shape: shape[-1] % 2 == 0, plan=_turn,
             slots=(LEAD, Data(_cache, within=lambda site: _UNIT), Data(_cache, within=lambda site: _UNIT),
                    Auxiliary(_positions)),
             degrees=(3, 4),
             settings=(planned("num_heads"), planned("rotary_embedding_dim", 0),
                       Setting("interleaved", Choice(0, 1), omit=0.5, default=0)),
             values=_turned),
)  # fmt: skip
