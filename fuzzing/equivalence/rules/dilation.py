"""Rule 6: a dilated convolution is one whose kernel is stuffed with zeros."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject, text
from fuzzing.rng import Rng


def _apis() -> tuple[str, ...]:
    return (*convolutions.FUNCTIONS, *convolutions.MODULES)


def _draw(api: str, rng: Rng) -> TestCase:
    return convolutions.draw(api, rng)


@register_rule(
    "dilation", number=6, equation="f(i, k, dilation=d) = f(i, k with d-1 zeros between taps)",
    apis=_apis, draw=_draw,
)  # fmt: skip
def rewrite(subject: Subject) -> Sides | None:
    """A kernel of length k becomes one of k + (k-1)(d-1), the taps at multiples of d; the bias stays."""
    given = convolutions.read(subject)
    if given is None or set(given.dilation) == {1}:
        return None
    places = ", ".join(f"::{step}" for step in given.dilation)
    stuffed = [
        f"kernel = {given.weight}.new_zeros((*{given.weight}.shape[:2], {', '.join(map(str, given.spans))}))",
        f"kernel[:, :, {places}] = {given.weight}",
    ]
    result = (
        f"{convolutions.function(given.rank)}({given.input}, kernel, {given.bias}, {given.stride}, "
        f"{text(given.padding)}, 1, {given.groups})"
    )
    return Sides(subject.program(), subject.program(result, stuffed))
