"""A reduction is the reduction of the reductions of chunks."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: API → the reduction of the chunks' results, over `parts`, stacked in a first dimension.
_COMBINE = {
    "sum": "parts.sum(0)", "nansum": "parts.sum(0)", "prod": "parts.prod(0)", "amax": "parts.amax(0)",
    "amin": "parts.amin(0)", "logsumexp": "parts.logsumexp(0)", "all": "parts.all(0)", "any": "parts.any(0)",
    "count_nonzero": "parts.sum(0)", "linalg.vector_norm": "torch.linalg.vector_norm(parts, dim=0)",
    "norm": "torch.linalg.vector_norm(parts, dim=0)", "mean": "parts.mean(0)",
}  # fmt: skip


def _apis() -> tuple[str, ...]:
    return tuple(f"torch.{name}" for name in _COMBINE)


def _draw(api: str, rng: Rng) -> TestCase:
    # 4 chunks of one length, below and above the blocks of torch's cascade sum.
    shape = (4 * rng.choice((1, 3, 33, 200)), rng.between(1, 9))
    dtype = rng.choice(("float32", "float64", "float16", "int32"))
    if dtype == "int32" and api in (
        "torch.mean",
        "torch.norm",
        "torch.linalg.vector_norm",
        "torch.logsumexp",
    ):
        dtype = "float32"
    values = (
        draws.integers(rng, shape, dtype, -1, 1) if dtype == "int32" else draws.uniform(rng, shape, dtype)
    )
    return draws.call_case(api, {"input": values}, {"dim": 0})


@register_rule("chunked", equation="reduce(i) = reduce(reduce(chunk₁), …)", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """Four chunks of equal length, as a mean needs."""
    combine = _COMBINE.get(subject.api.removeprefix("torch."))
    shape = subject.tensors["input"].shape if subject.names == ("input",) else ()
    if combine is None or len(shape) != 2 or shape[0] % 4 or not shape[0]:
        return None
    setup = [
        f"reduce = lambda input: {subject.expression}",
        "parts = torch.stack([reduce(part) for part in input.chunk(4)])",
    ]
    return Sides(subject.program(), subject.program(combine, setup))
