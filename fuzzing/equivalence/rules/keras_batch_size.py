"""Rule 15 for Keras: a layer in inference computes the same in batches of another size."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


@register_rule(
    "keras-batch-size", number=15, equation="f(i) = concatenate(f(first sample of i), f(the others))",
    apis=layers.names, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """Batches of one sample and of all others."""
    parts = "keras.ops.concatenate([self.layer(input[:1]), self.layer(input[1:])])"
    return Sides(subject.program(), subject.program(parts))
