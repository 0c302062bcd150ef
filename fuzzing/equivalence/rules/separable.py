"""Rule 5: a separable convolution is a depthwise and then a pointwise one.

torch has no separable convolution. Its kernel, the product of both, is given to the plain convolution.
"""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject, text
from fuzzing.rng import Rng


def _apis() -> tuple[str, ...]:
    return tuple(convolutions.FUNCTIONS)


def _draw(api: str, rng: Rng) -> TestCase:
    return convolutions.draw(api, rng, depthwise=True)


@register_rule(
    "separable", number=5, equation="f(i, p·d) = f(f(i, d, groups=channels), p)", apis=_apis, draw=_draw
)
def rewrite(subject: Subject) -> Sides | None:
    """The depthwise weight d is the subject's; p, 1 × 1, is its first tap, so that both are inputs."""
    given = convolutions.read(subject)
    if given is None or given.groups != given.channels:
        return None
    ones = ", ".join(["1"] * given.rank)
    # p[o, c]: two outputs from all the depthwise filters.
    pointwise = f"pointwise = {given.weight}.flatten(1)[:, :1].T.repeat(2, 1)"
    depthwise = (
        f"{convolutions.function(given.rank)}({given.input}, {given.weight}, None, {given.stride}, "
        f"{text(given.padding)}, {given.dilation}, {given.groups})"
    )
    separable = f"{convolutions.function(given.rank)}({depthwise}, pointwise.reshape(2, -1, {ones}))"
    each = given.filters // given.groups
    kernel = [
        pointwise,
        f"kernel = pointwise.reshape(2, {given.groups}, {each}, {ones}) * "
        f"{given.weight}.reshape({given.groups}, {each}, *{given.weight}.shape[2:])",
    ]
    plain = (
        f"{convolutions.function(given.rank)}({given.input}, kernel.sum(2), None, {given.stride}, "
        f"{text(given.padding)}, {given.dilation})"
    )
    return Sides(subject.program(separable, [pointwise]), subject.program(plain, kernel))
