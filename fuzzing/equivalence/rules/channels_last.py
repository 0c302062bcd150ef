"""A call on images computes the same with the channels last in memory."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject


def _apis() -> tuple[str, ...]:
    # What shows or depends on memory order is left out.
    shown = ("stride", "contiguous", "as_strided", "view", "dim_order", "suggest", "resize_", "set_", "put_")
    return tuple(api for api in api_lists.documented() if not any(word in api for word in shown))


@register_rule("channels-last", equation="f(i) = f(i with channels last in memory)", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """Inputs with four or five dimensions change their strides, not their elements."""
    formats = {4: "channels_last", 5: "channels_last_3d"}
    setup = [
        f"{name} = {name}.contiguous(memory_format=torch.{formats[len(tensor.shape)]})"
        for name, tensor in subject.tensors.items()
        if len(tensor.shape) in formats and name in subject.names
    ]
    return Sides(subject.program(), subject.program(setup=setup)) if setup else None
