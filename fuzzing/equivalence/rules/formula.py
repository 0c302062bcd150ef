"""Rule 7: an operator is the formula in its documentation."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.formulas import FORMULAS
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject, text
from fuzzing.rng import Rng

_BATCH_NORM = "torch.nn.BatchNorm2d"


def _apis() -> tuple[str, ...]:
    return (*FORMULAS, _BATCH_NORM)


def draw_batch_norm(rng: Rng) -> TestCase:
    """A module in inference mode, with and without scale and bias."""
    shape = draws.lengths(rng, 4, 1, 5)
    init = {"num_features": shape[1], "affine": rng.chance(0.5), "eps": rng.choice((1e-5, 1e-3))}
    return draws.call_case(_BATCH_NORM, {"input": draws.uniform(rng, shape)}, init=init, seed=rng.seed())


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
    # Only parameters that the formula has: momentum, for one, is of training.
    setup = [f"{name} = {value}" for name, value in values.items() if name != value]
    if any(name not in values and f"{name}" in formula.expression.split() for name in formula.parameters):
        return None
    return Sides(subject.program(), subject.program(formula.expression, setup))


def _rewrite_module(subject: Subject) -> Sides | None:
    name, *more = subject.names
    if more or subject.call.kwargs:
        return None
    centred = f"({name} - mean) / torch.sqrt(variance + self.layer.eps)"
    each = ".reshape(-1, 1, 1)"
    setup = [
        f"mean, variance = self.layer.running_mean{each}, self.layer.running_var{each}",
        f"result = {centred}",
        f"if self.layer.affine:\n    result = result * self.layer.weight{each} + self.layer.bias{each}",
    ]
    return Sides(subject.program(), subject.program("result", setup))
