"""Runs and classifies cases outside the plan, such as reduced ones.

As planned cases: at head, then at base where head fails; failures are repeated in fresh processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.campaigns.classify.changes import describe_change
from bot.campaigns.classify.classification import CaseResults, ClassifiedCase, RerunCounts, classify
from bot.campaigns.context import Context
from bot.campaigns.run.out_of_reach import explain_failures
from bot.campaigns.run.repeats import one_of_each, repeat, repeated_change
from bot.campaigns.run.shards import (
    Environment,
    ShardOptions,
    load_outcomes,
    record_outcomes,
    remaining_budget,
    run_shard,
)
from bot.campaigns.services import Config
from bot.store import outcomes
from bot.store.models import Side
from fuzzing.outcomes import Outcome, Verdict


@dataclass(frozen=True)
class ExtraCase:
    """A case that fails at head.

    head        its outcome there, with the component at fault
    classified  its classification
    """

    case: str
    head: Outcome
    classified: ClassifiedCase


def run_extra_cases(
    context: Context,
    config: Config,
    head: Environment,
    base: Environment | None,
    cases: Iterable[str],
    budget: float,
) -> dict[str, ExtraCase]:
    """Runs those of `cases` that have no outcome, charged to the current step; the failing ones at head, by
    id.

    What the budget does not allow is missing; what was not repeated is inconclusive.
    """
    wanted = list(dict.fromkeys(cases))
    step = context.step.state.value
    _run(context, config, ShardOptions(head, step, budget), wanted)
    failures = [
        outcome for outcome in load_outcomes(context, head, wanted).values() if outcome.verdict.is_failure
    ]
    failing = [outcome.case for outcome in failures]
    unforked = one_of_each(context, failures)
    repeat(context, config, ShardOptions(head, step, budget, ablate=True, unforked=unforked), failing)
    if base is not None:
        at_base = ShardOptions(base, step, budget)
        _run(context, config, at_base, failing)
        at_head = load_outcomes(context, head, failing)
        compared = [
            case
            for case, outcome in load_outcomes(context, base, failing).items()
            if outcome.verdict is Verdict.PASS or describe_change(at_head[case], outcome)
        ]
        repeat(context, config, at_base, compared)
    out_of_reach = {} if base is None else explain_failures(context, config, head, failures)
    seen = (
        replace(_case_results(context, config, head, base, case), out_of_reach=out_of_reach.get(case, ""))
        for case in failing
    )
    return {
        one.head.case: ExtraCase(one.head.case, one.head, found) for one in seen if (found := classify(one))
    }


def _run(context: Context, config: Config, shard_options: ShardOptions, cases: list[str]) -> None:
    known = load_outcomes(context, shard_options.environment, cases)
    missing = [case for case in cases if case not in known]
    if missing and remaining_budget(context, shard_options) > 0:
        run_shard(
            context,
            config,
            shard_options,
            missing,
            lambda session, runs: record_outcomes(context, session, runs),
        )


def _case_results(
    context: Context, config: Config, head: Environment, base: Environment | None, case: str
) -> CaseResults:
    with context.reading() as (session, campaign):
        at_head = outcomes.get(session, case, head.key)
        assert at_head is not None
        runs = {
            environment.side: RerunCounts(
                *outcomes.agreement(session, campaign.id, environment.side, environment.key, case).get(
                    case, (0, 0)
                )
            )
            for environment in (head, base)
            if environment is not None
        }
        at_base = None if base is None else outcomes.get(session, case, base.key)
        return CaseResults(
            head=outcomes.with_component(session, campaign.id, Side.HEAD, at_head),
            base=at_base,
            head_runs=runs[Side.HEAD],
            base_runs=runs.get(Side.BASE, RerunCounts()),
            repeats=config.repeats,
            compared=base is not None,
            reruns=tuple(outcomes.repeats(session, campaign.id, Side.HEAD, case)),
            change=repeated_change(session, campaign.id, config.repeats, at_head, at_base),
        )
