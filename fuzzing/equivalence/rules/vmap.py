"""A vectorized call computes what a loop of calls does."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

_HELPER = """

def both(tensor):
    return torch.stack([tensor, tensor.flip(0) if tensor.dim() else tensor])


def stacked(results):
    leaves = [torch.utils._pytree.tree_leaves(result) for result in results]
    return [torch.stack([torch.as_tensor(item) for item in items]) for items in zip(*leaves)]
"""


@register_rule("vmap", equation="vmap(f)(i) = stack(f(i₁), f(i₂))", apis=api_lists.functions)
def rewrite(subject: Subject) -> Sides | None:
    """A batch of the inputs and of the same in reverse order."""
    if not subject.names or subject.case.comparison == "shapes":
        return None
    setup = [f"batch = [both(tensor) for tensor in ({', '.join(subject.names)},)]"]
    setup.append(f"call = lambda {', '.join(subject.names)}: {subject.expression}")
    loop = "stacked([call(*[tensor[place] for tensor in batch]) for place in range(2)])"
    vectorized = (
        "torch.utils._pytree.tree_leaves(torch.vmap(lambda *inputs: "
        "tuple(map(torch.as_tensor, torch.utils._pytree.tree_leaves(call(*inputs)))))(*batch))"
    )
    return Sides(
        subject.program(loop, setup, helpers=_HELPER), subject.program(vectorized, setup, helpers=_HELPER)
    )
