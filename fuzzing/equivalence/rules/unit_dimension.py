"""Rule 3: an operator on n dimensions is that on n + 1 dimensions, of which one has length 1."""

from __future__ import annotations

from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions, draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_POOLS = {
    f"torch.nn.functional.{kind}_pool{rank}d": (kind, rank) for kind in ("max", "avg") for rank in (1, 2)
}
_MAX = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_AVERAGE = ("input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")


def _apis() -> tuple[str, ...]:
    flat = [api for api, rank in (convolutions.FUNCTIONS | convolutions.MODULES).items() if rank < 3]
    return (*flat, *_POOLS)


def _draw(api: str, rng: Rng) -> TestCase:
    if api not in _POOLS:
        return convolutions.draw(api, rng)
    kind, rank = _POOLS[api]
    kernel = draws.lengths(rng, rank, 2, 4)
    settings: dict[str, Any] = {
        "kernel_size": kernel,
        "stride": draws.lengths(rng, rank, 1, 3),
        "padding": tuple(rng.between(0, size // 2) for size in kernel),
        "ceil_mode": rng.chance(0.5),
    }
    if kind == "max":
        settings["dilation"] = draws.lengths(rng, rank, 1, 2)
    else:
        settings["count_include_pad"] = rng.chance(0.5)
    shape = (*draws.lengths(rng, 2, 1, 3), *draws.lengths(rng, rank, 8, 12))
    return draws.call_case(api, {"input": draws.uniform(rng, shape)}, settings)


@register_rule(
    "unit-dimension", number=3, equation="f(i) = squeeze(g(unsqueeze(i))), g with a dimension more",
    apis=_apis, draw=_draw,
)  # fmt: skip
def rewrite(subject: Subject) -> Sides | None:
    """Adds the dimension before the others; kernel, stride and dilation are 1 there, the padding is 0."""
    return _rewrite_pool(subject) if subject.api in _POOLS else _rewrite_convolution(subject)


def _rewrite_convolution(subject: Subject) -> Sides | None:
    given = convolutions.read(subject)
    if given is None or given.rank > 2 or isinstance(given.padding, str):
        return None
    at = -given.rank - 1
    result = (
        f"{convolutions.function(given.rank + 1)}({given.input}.unsqueeze({at}), "
        f"{given.weight}.unsqueeze({at}), {given.bias}, {(1, *given.stride)}, {(0, *given.padding)}, "
        f"{(1, *given.dilation)}, {given.groups}).squeeze({at})"
    )
    return Sides(subject.program(), subject.program(result))


def _rewrite_pool(subject: Subject) -> Sides | None:
    kind, rank = _POOLS[subject.api]
    given = subject.bind(_MAX if kind == "max" else _AVERAGE)
    if given is None or given.get("return_indices") or "kernel_size" not in given:
        return None
    kernel = _each(given["kernel_size"], rank)
    settings = [
        f"kernel_size={(1, *kernel)}",
        f"stride={(1, *(_each(given.get('stride'), rank) or kernel))}",
        f"padding={(0, *_each(given.get('padding', 0), rank))}",
        f"ceil_mode={given.get('ceil_mode', False)}",
    ]
    if kind == "max":
        settings.append(f"dilation={(1, *_each(given.get('dilation', 1), rank))}")
    else:
        settings.append(f"count_include_pad={given.get('count_include_pad', True)}")
    at, data = -rank - 1, subject.names[0]
    wide = f"torch.nn.functional.{kind}_pool{rank + 1}d"
    result = f"{wide}({data}.unsqueeze({at}), {', '.join(settings)}).squeeze({at})"
    return Sides(subject.program(), subject.program(result))


def _each(value: Any, rank: int) -> tuple[int, ...]:
    if value is None or value == ():
        return ()
    return (value,) * rank if isinstance(value, int) else tuple(value) * (rank if len(value) == 1 else 1)
