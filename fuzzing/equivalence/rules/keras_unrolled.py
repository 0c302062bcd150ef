"""A recurrent layer of Keras computes the same unrolled, and backwards on the reversed sequence."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


def _apis() -> tuple[str, ...]:
    return layers.with_setting("unroll", "go_backwards")


@register_rule(
    "keras-unrolled", equation="f(i) = f(i, unrolled)", apis=_apis, draw=layers.draw, library="keras"
)
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """One step after the other, without a loop."""
    return Sides(subject.program(), subject.program(made=subject.made(unroll=True)))


@register_rule(
    "keras-backwards", equation="f(i) = f(reversed i, backwards)",
    apis=_apis, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite_backwards(subject: layers.LayerSubject) -> Sides | None:
    """The sequence is the second dimension."""
    return Sides(
        subject.program(),
        subject.program("self.layer(keras.ops.flip(input, 1))", made=subject.made(go_backwards=True)),
    )
