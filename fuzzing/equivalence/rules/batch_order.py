"""A model in inference computes the same for the samples of a batch in another order."""

from __future__ import annotations

from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.rules import batch_size
from fuzzing.equivalence.subject import Subject


@register_rule(
    "batch-order",
    equation="f(i) = f(samples of i in reverse) in reverse",
    apis=batch_size.apis,
    draw=batch_size.draw,
)
def rewrite(subject: Subject) -> Sides | None:
    """Reverses the first dimension; of a recurrent layer the output alone, not the state."""
    shape = subject.tensors["input"].shape if subject.names == ("input",) else ()
    if len(shape) < 2 or shape[0] < 2 or not subject.layer:
        return None
    first = "[0]" if subject.api == "torch.nn.GRU" else ""
    return Sides(
        subject.program(f"self.layer(input){first}"),
        subject.program(f"self.layer(input.flip(0)){first}.flip(0)"),
    )
