"""Rule 2: padding="same" is explicit padding by zeros, then no padding."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng


def _apis() -> tuple[str, ...]:
    return (*convolutions.FUNCTIONS, *convolutions.MODULES)


def _draw(api: str, rng: Rng) -> TestCase:
    return convolutions.draw(api, rng, {"padding": "same", "stride": 1})


@register_rule("same-padding", number=2, equation='f(i, padding="same") = f(pad(i))', apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """Pads P = d·(k-1) zeros in each dimension, P // 2 of them on the left; torch allows stride 1 only."""
    given = convolutions.read(subject)
    if given is None or given.padding != "same" or set(given.stride) != {1}:
        return None
    widths: list[int] = []
    for span in reversed(given.spans):  # torch pads the last dimension first
        widths += [(span - 1) // 2, span - 1 - (span - 1) // 2]
    padded = f"padded = torch.nn.functional.pad({given.input}, {tuple(widths)})"
    result = (
        f"{convolutions.function(given.rank)}(padded, {given.weight}, {given.bias}, "
        f"dilation={given.dilation}, groups={given.groups})"
    )
    return Sides(subject.program(), subject.program(result, [padded]))
