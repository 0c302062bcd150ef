"""A call computes the same on views of larger memory as on tensors of their own."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

#: Every second element of the last dimension of a tensor twice as large, whose others are 1.
_HELPER = """

def view(tensor):
    if not tensor.dim() or tensor.layout != torch.strided:
        return tensor
    wide = tensor.new_ones((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide[..., ::2] = tensor
    return wide[..., ::2]
"""


def _apis() -> tuple[str, ...]:
    # These show the memory itself.
    shown = (
        "stride",
        "storage_offset",
        "as_strided",
        "is_contiguous",
        "view",
        "dim_order",
        "empty",
        "data",
        "detach_",
    )
    return tuple(
        api for api in api_lists.documented() if not any(word in api.rsplit(".", 1)[-1] for word in shown)
    )


@register_rule("views", equation="f(i) = f(view of i in larger memory)", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """The inputs become strided views."""
    if not subject.names:
        return None
    setup = [f"{name} = view({name})" for name in subject.names]
    return Sides(subject.program(), subject.program(setup=setup, helpers=_HELPER))
