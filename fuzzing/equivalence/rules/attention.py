"""The implementations of attention agree with one another."""

from __future__ import annotations

from functools import partial
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_API = "torch.nn.functional.scaled_dot_product_attention"
_HELPER = """

def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    if attn_mask is not None:
        scores = scores + attn_mask
    return torch.softmax(scores, -1) @ value
"""
_FORCED = """from torch.nn.attention import SDPBackend, sdpa_kernel
with sdpa_kernel(SDPBackend.{}):
    result = {{call}}"""
_WAYS = {
    "math": _FORCED.format("MATH"),
    "flash": _FORCED.format("FLASH_ATTENTION"),
    "formula": "result = {call}",
}


def _apis() -> tuple[str, ...]:
    return (_API,)


def _draw(api: str, rng: Rng) -> TestCase:
    batch, keys, groups, queries, length, size = draws.lengths(rng, 6, 1, 4)
    queries, length = queries * rng.choice((1, 9)), length * rng.choice((1, 17))
    settings: dict[str, Any] = {"is_causal": rng.chance(0.3)}
    if rng.chance(0.3):
        settings["scale"] = 0.3
    if groups > 1:
        settings["enable_gqa"] = True
    dtype = rng.choice(("float32", "float64"))
    inputs = {
        "query": draws.uniform(rng, (batch, keys * groups, queries, size), dtype, 3.0),
        "key": draws.uniform(rng, (batch, keys, length, size), dtype, 3.0),
        "value": draws.uniform(rng, (batch, keys, length, size), dtype),
    }
    if not settings["is_causal"] and rng.chance(0.5):
        inputs["attn_mask"] = draws.uniform(rng, (queries, length), dtype)
    return draws.call_case(api, inputs, settings)


def rewrite(subject: Subject, way: str) -> Sides | None:
    """Torch's own choice, and one implementation or the documented formula."""
    if subject.api != _API:
        return None
    call = subject.expression.replace(_API, "attention") if way == "formula" else subject.expression
    setup = [_WAYS[way].format(call=call)]
    helpers = _HELPER if way == "formula" else ""
    return Sides(subject.program(), subject.program("result", setup, helpers))


for _way in _WAYS:
    register_rule(f"attention-{_way}", equation="attention(i) = its implementations", apis=_apis, draw=_draw)(
        partial(rewrite, way=_way)
    )
