"""Rule 7: an operator is the formula in its documentation."""

from __future__ import annotations

import re

from fuzzing.equivalence.formulas import FORMULAS
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject, text

_BATCH_NORM = "torch.nn.BatchNorm2d"


def _apis() -> tuple[str, ...]:
    return (*FORMULAS, _BATCH_NORM)


@register_rule("formula", number=7, equation="f(i) = the formula in f's documentation", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """The formula with the subject's values; missing scale is 1 and missing bias 0."""
    if subject.api == _BATCH_NORM:
        return _rewrite_module(subject)
    formula = FORMULAS.get(subject.api)
    given = None if formula is None else subject.bind(formula.parameters)
    if formula is None or given is None or any(given.get(name) for name in formula.unless):
        return None
    values = {**formula.defaults, **{name: text(value) for name, value in given.items()}}
    missing = set(formula.parameters) - set(values)
    if missing & set(re.findall(r"\w+", formula.expression)):
        return None  # such as softmax without dim, which torch guesses
    # Integers take part in promotion differently when a formula has fractions.
    if any(not tensor.dtype.startswith("float") for tensor in subject.tensors.values()):
        return None
    setup = [f"{name} = {value}" for name, value in values.items() if name != value]
    return Sides(subject.program(), subject.program(formula.expression, setup))


def _rewrite_module(subject: Subject) -> Sides | None:
    name, *more = subject.names
    init = subject.call.init
    if more or subject.call.kwargs or init is None or not dict(init.kwargs).get("track_running_stats", True):
        return None
    centered = f"({name} - mean) / torch.sqrt(variance + self.layer.eps)"
    each = ".reshape(-1, 1, 1)"
    setup = [
        f"mean, variance = self.layer.running_mean{each}, self.layer.running_var{each}",
        f"result = {centered}",
        f"if self.layer.affine:\n    result = result * self.layer.weight{each} + self.layer.bias{each}",
    ]
    return Sides(subject.program(), subject.program("result", setup))
