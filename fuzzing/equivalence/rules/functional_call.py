"""A module computes the same with its parameters passed from outside."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject


@register_rule("functional-call", equation="f(i) = functional_call(f, parameters, i)", apis=api_lists.modules)
def rewrite(subject: Subject) -> Sides | None:
    """The parameters are taken from the module, which then has zeros."""
    call = subject.call
    if not subject.layer or call.kwargs or len(call.args) != len(subject.names):
        return None
    setup = [
        "state = {name: tensor.clone() for name, tensor in self.layer.state_dict().items()}",
        "for tensor in self.layer.parameters():\n    tensor.data.zero_()",
    ]
    result = f"torch.func.functional_call(self.layer, state, ({', '.join(subject.names)},))"
    return Sides(subject.program(), subject.program(result, setup))
