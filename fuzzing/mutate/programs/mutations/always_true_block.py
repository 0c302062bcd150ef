"""Always-true blocks: statements in an `if` whose condition holds for the case's inputs (EMI)."""

from __future__ import annotations

import math
from collections.abc import Callable

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.profile import Point
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements
from fuzzing.mutate.programs.runs import draw_run, find_run
from fuzzing.rng import Rng

#: How far apart, relatively, two floats are whose order a compiler must keep: the tolerance of results.
_MARGIN = 1e-2
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
}


@register_mutation("always-true-block")
class AlwaysTrueBlock:
    """A run goes into a block whose condition compares two scalars (seed paper, M4).

    Sound for these inputs: the condition is evaluated on the variables' values exactly before the run, and
    holds. Floats that are nearly equal are not compared, because a compiler may round either way.

    parameters: `first` and `last` of the run; `condition`; `body`: run, or pass for an empty block before it.
    """

    exact = True

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A run and a condition."""
        run = draw_run(proposal.program, proposal.rng)
        point = proposal.profile.before(run.block, run.start) if run is not None else None
        if run is None or point is None:
            return None
        condition = _draw_condition(point, proposal.rng)
        body = "pass" if proposal.rng.chance(0.15) else "run"
        return None if condition is None else {**run.place(), "condition": condition, "body": body}

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The block in place of the run, or before it."""
        del number
        run = find_run(program, parameters["first"], parameters["last"])
        if run is None:
            return None
        text = f"if {parameters['condition']}:\n    "
        if parameters["body"] == "run":
            return run.rewrite(parse_statements(f"{text}RUN", RUN=run.statements))
        return run.rewrite([*parse_statements(f"{text}pass"), *run.statements])


def _draw_condition(point: Point, rng: Rng) -> str | None:
    """`scalar operator scalar`, true at the point; None if no operator certainly holds."""
    one, left = _draw_scalar(point, rng)
    other, right = _draw_scalar(point, rng)
    if not (math.isfinite(left) and math.isfinite(right)):
        return None
    whole = isinstance(left, int) and isinstance(right, int)
    if not whole and abs(left - right) <= _MARGIN * (1 + max(abs(left), abs(right))):
        return None
    holding = [sign for sign, holds in _OPERATORS.items() if holds(left, right)]
    return f"{one} {rng.choice(holding)} {other}"


def _draw_scalar(point: Point, rng: Rng) -> tuple[str, float]:
    """A scalar of the paper's grammar, and its value."""
    usable = sorted(
        name
        for name, facts in point.items()
        if facts.values.numel() and not facts.dtype.is_complex and str(facts.dtype) != "torch.bool"
    )
    form = rng.choice(("element", "length", "rank", "max", "min", "constant")) if usable else "constant"
    if form == "constant":
        number = rng.choice((-100_000, 100_000, rng.between(-9, 9)))
        return str(number), number
    name = rng.choice(usable)
    values = point[name].values
    if form == "rank":
        return f"len({name}.shape)", len(values.shape)
    if form == "length" and values.shape:
        axis = rng.below(len(values.shape))
        return f"{name}.shape[{axis}]", values.shape[axis]
    if form in ("max", "min"):
        extreme = values.max() if form == "max" else values.min()
        return f"{name}.{form}()", extreme.item()
    place = tuple(rng.below(length) for length in values.shape)
    return f"{name}[{', '.join(map(str, place)) or '...'}]", values[place].item()
