"""The first stage of a compiler after which a wrong result is wrong already."""

from __future__ import annotations

from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.localize.methods.base import register_method
from fuzzing.localize.search import find_first
from fuzzing.outcomes import Outcome, Verdict


@register_method("stage")
def stage(failure: FailingCase) -> Fact | None:
    """Bisects over the stages that the backend can evaluate by another way than the compiler's."""
    stages = failure.noted_names("stage")
    if not stages or failure.outcome.verdict is not Verdict.WRONG_RESULT:
        return None
    before = failure.runs
    seen: dict[int, Outcome] = {}

    def right(place: int) -> bool:
        if place not in seen:
            seen[place] = failure.run_until_stage(stages[place])
        return seen[place].verdict is Verdict.PASS

    place = 0 if not right(0) else find_first(len(stages), lambda place: not right(place))
    runs = failure.runs - before
    if place == len(stages):
        how = f"evaluated after {stages[-1]}, the last of {len(stages)} stages, it is right: what runs errs"
        return Fact("stage", ("execution",), how, runs, True)
    if not failure.is_same_failure(seen[place]):
        after = f"right after {stages[place - 1]}; " if place else ""
        how = f"{after}after {stages[place]} it cannot be evaluated: {seen[place].summary}"
        return Fact("stage", (), how, runs)
    return _describe_found(failure, stages, place, before)


def _describe_found(failure: FailingCase, stages: tuple[str, ...], place: int, before: int) -> Fact:
    wrong = failure.is_same_failure(failure.run_until_stage(stages[place], fresh=True))
    if not place:
        how = "evaluated as the frontend made it, by other kernels than the plugin's, it is wrong already"
        return Fact("stage", (stages[0],), how, failure.runs - before, wrong)
    right = failure.run_until_stage(stages[place - 1], fresh=True).verdict is Verdict.PASS
    last_right = stages[place - 1]
    how = f"the first of {len(stages)} stages after which it is evaluated wrong; right after {last_right}"
    return Fact("stage", (stages[place],), how, failure.runs - before, wrong and right)
