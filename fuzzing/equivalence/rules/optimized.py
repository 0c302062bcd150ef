"""Rule 1: a call computes the same when an optimizer has worked on it. One rule for each optimizer."""

from __future__ import annotations

from functools import partial

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.optimizers import OPTIMIZERS, Optimizer
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

_CALL = """

class Call(torch.nn.Module):
    def __init__(self{given}):
        super().__init__(){made}

    def forward({names}):
        return {expression}
"""


def rewrite_by(subject: Subject, optimizer: Optimizer) -> Sides | None:
    """The call as a module of its own, run as it is and optimized; the outputs flattened."""
    module, names = bool(subject.layer), subject.names
    if not names:
        return None
    call = _CALL.format(
        given=", layer" if module else "",
        made="\n        self.layer = layer" if module else "",
        names=", ".join(["self", *names]),
        expression=subject.expression,
    )
    made = f"Call({'self.layer' if module else ''}).eval()"
    inputs = f"({', '.join(names)},)"
    flat = "torch.utils._pytree.tree_leaves({})"
    return Sides(
        subject.program(flat.format(f"{made}(*{inputs})"), helpers=call),
        subject.program(flat.format(f"optimized({made}, {inputs})"), helpers=call + optimizer.text),
    )


for _name, _optimizer in OPTIMIZERS.items():
    register_rule(
        f"optimized-{_name}",
        number=1,
        equation=f"f(i) = {_optimizer.description}(f)(i)",
        apis=api_lists.documented,
        compiles=True,
    )(partial(rewrite_by, optimizer=_optimizer))
