"""Pairs in the order in which a source yields them: few of every API and rule first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fuzzing.cases import TestCase
from fuzzing.equivalence import pairs, rule
from fuzzing.errors import InternalError
from fuzzing.generate.docter.observation import observed_comparison
from fuzzing.generate.docter.trials import Trial, TrialPlan
from fuzzing.generate.docter.trials import run as run_trials
from fuzzing.rng import Rng, derive_seed

#: EAGLE's argument sets for each pair (section "Evaluation").
PER_PAIR = 400
#: Ends of the rounds: a budget that ends early has seen every rule and API.
_ROUNDS = (1, 3, 10, 40, 150)


@dataclass(frozen=True)
class Plan:
    """What to draw.

    rules     the rules to instantiate
    count     subjects for each rule and API
    contains  whether an API belongs to this part
    """

    rules: Sequence[rule.Rule]
    count: int = PER_PAIR
    seed: int = 0
    contains: Callable[[str], bool] = lambda _api: True


def iterate_pairs(plan: Plan) -> Iterator[TestCase | Trial]:
    """The pairs, and the draws that the library refuses."""
    own = [(one, api) for one in plan.rules if one.draw for api in one.apis() if plan.contains(api)]
    shared = rules_by_api([one for one in plan.rules if one.draw is None])
    shared = {api: rules for api, rules in shared.items() if plan.contains(api)}
    begin = 0
    for end in [*(n for n in _ROUNDS if n < plan.count), plan.count]:
        for one, api in own:
            for place in range(begin, end):
                yield from _instances([one], _draw(one, api, place, plan.seed))
        trials = TrialPlan(count=end, seed=plan.seed, start=begin)
        for trial in run_trials(shared, trials):
            if trial.ending == "accepted" and trial.case is not None:
                yield from _observed_instances(shared[trial.api], trial)
            else:
                yield trial
        begin = end


def rules_by_api(rules: Sequence[rule.Rule]) -> dict[str, list[rule.Rule]]:
    """API → the rules that apply to it, those that compile last."""
    found: dict[str, list[rule.Rule]] = {}
    for one in sorted(rules, key=lambda one: one.compiles):
        for api in one.apis():
            found.setdefault(api, []).append(one)
    return found


def _draw(one: rule.Rule, api: str, place: int, seed: int) -> TestCase:
    assert one.draw is not None
    drawn = one.draw(api, Rng(derive_seed(seed, one.name, api, place)))
    return replace(drawn, provenance=replace(drawn.provenance, test=f"{api}/{place}", seed=seed))


def _observed_instances(rules: Sequence[rule.Rule], trial: Trial) -> Iterator[TestCase | Trial]:
    assert trial.case is not None
    try:
        subject = replace(trial.case, comparison=observed_comparison(trial.case))
    except InternalError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever torch raises; it did not a moment ago
        yield replace(trial, ending="rejected", detail=repr(error)[:300])
        return
    yield from _instances(rules, subject)


def _instances(rules: Sequence[rule.Rule], subject: TestCase) -> Iterator[TestCase]:
    for one in rules:
        if (pair := pairs.make_pair(one, subject)) is not None:
            yield pair
