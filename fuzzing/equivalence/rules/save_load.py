"""Rule 16: a model that was saved and loaded computes the same."""

from __future__ import annotations

from functools import partial

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

#: How to get a module of the same state through bytes; `make` is the expression of a new one.
_ROUND_TRIPS = {
    "state-dict": "file = io.BytesIO()\ntorch.save(self.layer.state_dict(), file)\nfile.seek(0)\n"
    "layer = {make}.eval()\nlayer.load_state_dict(torch.load(file, weights_only=True))",
    "whole": "file = io.BytesIO()\ntorch.save(self.layer, file)\nfile.seek(0)\n"
    "layer = torch.load(file, weights_only=False)",
    "deepcopy": "layer = copy.deepcopy(self.layer)",
}


def rewrite(subject: Subject, how: str) -> Sides | None:
    """The module, and another made from what was saved of it."""
    if not subject.layer or subject.case.comparison == "shapes":
        return None
    setup = ["import copy, io", _ROUND_TRIPS[how].format(make=subject.layer)]
    result = subject.expression.replace("self.layer", "layer")
    return Sides(subject.program(), subject.program(result, setup))


for _how in _ROUND_TRIPS:
    register_rule(f"save-load-{_how}", number=16, equation="f(i) = load(save(f))(i)", apis=api_lists.modules)(
        partial(rewrite, how=_how)
    )
