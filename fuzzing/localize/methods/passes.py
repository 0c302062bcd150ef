"""The compiler's passes without which the case passes."""

from __future__ import annotations

from functools import cache

from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase, names
from fuzzing.localize.methods.base import register_method
from fuzzing.localize.search import Effect, find_smallest_cure
from fuzzing.outcomes import Verdict


@register_method("passes")
def passes(failure: FailingCase) -> Fact | None:
    """The smallest set of passes, optimizers, switches that must be left out for the case to pass."""
    before = failure.runs
    known = _find_all_passes(failure)
    if not known:
        return None
    effect = cache(lambda names: _effect(failure, names))
    cure = find_smallest_cure(known, effect)
    if cure is None:
        return Fact("passes", (), _explain_no_cure(len(known), effect(tuple(known))), failure.runs - before)
    cured = failure.run_without(cure, fresh=True).verdict is Verdict.PASS
    fails = failure.is_same_failure(failure.run_without((), fresh=True))
    left_out = f"{' and '.join(cure)} {'is' if len(cure) == 1 else 'are all'} left out"
    how = f"of {len(known)} passes that had something to do; it passes where {left_out}"
    return Fact("passes", cure, how, failure.runs - before, cured and fails)


def _explain_no_cure(count: int, whole: Effect) -> str:
    if whole is Effect.NONE:
        return f"it fails as before without all {count} passes: the fault is in what cannot be left out"
    return f"of {count} passes none was found to cure it; without all of them the compiler fails otherwise"


def _effect(failure: FailingCase, names: tuple[str, ...]) -> Effect:
    outcome = failure.run_without(names)
    if outcome.verdict is Verdict.PASS:
        return Effect.CURED
    return Effect.NONE if failure.shows_same_bug(outcome) else Effect.OTHER


def _find_all_passes(failure: FailingCase) -> list[str]:
    """The passes that change the case, and those that take over where these are left out."""
    known = list(dict.fromkeys(failure.noted_names("bisectable_pass")))
    while known:
        outcome, notes = failure.instrumented(known)
        new = [name for name in dict.fromkeys(names(notes, "bisectable_pass")) if name not in known]
        if not new:
            return known
        known += new
        if outcome.verdict is Verdict.PASS:
            return known
    return known
