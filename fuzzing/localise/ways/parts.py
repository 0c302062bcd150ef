"""The parts of the compiler whose absence, by name, cures the failure."""

from __future__ import annotations

from functools import cache

from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure, names
from fuzzing.localise.search import Effect, smallest_cure
from fuzzing.localise.ways.base import register_way
from fuzzing.outcomes import Verdict


@register_way("parts")
def parts(failure: Failure) -> Fact | None:
    """The smallest set of passes, optimisers, switches that must be left out for the case to pass."""
    before = failure.runs
    known = _all_parts(failure)
    if not known:
        return None
    effect = cache(lambda names: _effect(failure, names))
    cure = smallest_cure(known, effect)
    if cure is None:
        return Fact("parts", (), _no_cure(len(known), effect(tuple(known))), failure.runs - before)
    cured = failure.outcome_without(cure, fresh=True).verdict is Verdict.PASS
    fails = failure.alike(failure.outcome_without((), fresh=True))
    left_out = f"{' and '.join(cure)} {'is' if len(cure) == 1 else 'are all'} left out"
    how = f"of {len(known)} parts that had something to do; it passes where {left_out}"
    return Fact("parts", cure, how, failure.runs - before, cured and fails)


def _no_cure(count: int, whole: Effect) -> str:
    if whole is Effect.NONE:
        return f"it fails as before without all {count} parts: it is in what cannot be left out"
    return f"of {count} parts none was found to cure it; without all of them the compiler fails otherwise"


def _effect(failure: Failure, names: tuple[str, ...]) -> Effect:
    outcome = failure.outcome_without(names)
    if outcome.verdict is Verdict.PASS:
        return Effect.CURED
    return Effect.NONE if failure.shown_by(outcome) else Effect.OTHER


def _all_parts(failure: Failure) -> list[str]:
    """The parts that have something to do, and those that take over where they are left out."""
    known = list(dict.fromkeys(failure.noted("part")))
    while known:
        outcome, seen = failure.watched(known)
        new = [name for name in dict.fromkeys(names(seen, "part")) if name not in known]
        if not new:
            return known
        known += new
        if outcome.verdict is Verdict.PASS:
            return known
    return known
