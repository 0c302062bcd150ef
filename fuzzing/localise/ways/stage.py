"""The first stage of a compiler after which a wrong result is wrong already."""

from __future__ import annotations

from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.search import first_place
from fuzzing.localise.ways.base import register_way
from fuzzing.outcomes import Outcome, Verdict


@register_way("stage")
def stage(failure: Failure) -> Fact | None:
    """Bisects over the stages that the backend can evaluate by another way than the compiler's."""
    stages = failure.noted("stage")
    if not stages or failure.outcome.verdict is not Verdict.WRONG_RESULT:
        return None
    before = failure.runs
    seen: dict[int, Outcome] = {}

    def right(place: int) -> bool:
        if place not in seen:
            seen[place] = failure.outcome_until(stages[place])
        return seen[place].verdict is Verdict.PASS

    place = 0 if not right(0) else first_place(len(stages), lambda place: not right(place))
    runs = failure.runs - before
    if place == len(stages):
        how = f"evaluated after {stages[-1]}, the last of {len(stages)} stages, it is right: what runs errs"
        return Fact("stage", ("execution",), how, runs, True)
    if not failure.alike(seen[place]):
        after = f"right after {stages[place - 1]}; " if place else ""
        how = f"{after}after {stages[place]} it cannot be evaluated: {seen[place].summary}"
        return Fact("stage", (), how, runs)
    return _found(failure, stages, place, before)


def _found(failure: Failure, stages: tuple[str, ...], place: int, before: int) -> Fact:
    wrong = failure.alike(failure.outcome_until(stages[place], fresh=True))
    if not place:
        how = "evaluated as the frontend made it, by other kernels than the plugin's, it is wrong already"
        return Fact("stage", (stages[0],), how, failure.runs - before, wrong)
    right = failure.outcome_until(stages[place - 1], fresh=True).verdict is Verdict.PASS
    last_right = stages[place - 1]
    how = f"the first of {len(stages)} stages after which it is evaluated wrong; right after {last_right}"
    return Fact("stage", (stages[place],), how, failure.runs - before, wrong and right)
