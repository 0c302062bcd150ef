"""Rule 4: a grouped convolution is one convolution for each group, concatenated."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject, text
from fuzzing.rng import Rng


def _apis() -> tuple[str, ...]:
    return (*convolutions.FUNCTIONS, *convolutions.MODULES)


def _draw(api: str, rng: Rng) -> TestCase:
    return convolutions.draw(api, rng, depthwise=rng.chance(0.5))


@register_rule(
    "depthwise", number=4, equation="f(i, groups=g) = cat(f(i₁), …, f(i_g))", apis=_apis, draw=_draw
)
def rewrite(subject: Subject) -> Sides | None:
    """Splits input, weight and bias along the channels; with as many groups as channels it is depthwise."""
    given = convolutions.read(subject)
    if given is None or given.groups < 2:
        return None
    channels = -given.rank - 1
    setup = [
        f"inputs = {given.input}.chunk({given.groups}, {channels})",
        f"weights = {given.weight}.chunk({given.groups})",
        "biases = "
        + (f"[None] * {given.groups}" if given.bias == "None" else f"{given.bias}.chunk({given.groups})"),
        f"parts = [{convolutions.function(given.rank)}(i, w, b, {given.stride}, {text(given.padding)}, "
        f"{given.dilation}) for i, w, b in zip(inputs, weights, biases)]",
    ]
    return Sides(subject.program(), subject.program(f"torch.cat(parts, {channels})", setup))
