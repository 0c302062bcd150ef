"""Comparing: runs base on the other cases, for fixes, changes and lost support; writes the findings.

Changes of evidence (`bot.campaigns.classify.changes`) are repeated in fresh processes on both sides: one of
each pair of signatures as often as a regression, others once. Limited to the campaign's budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from bot.campaigns.classify.changes import describe_change
from bot.campaigns.classify.classification import CaseResults, RerunCounts, classify, make_finding
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.confirmation import needed_repeats
from bot.campaigns.run.noise import measure_noise
from bot.campaigns.run.out_of_reach import find_out_of_reach
from bot.campaigns.run.repeats import repeat, repeated_change, signature_key
from bot.campaigns.run.shards import Environment, ShardOptions, load_environments, run_pending
from bot.campaigns.services import Config
from bot.store import findings, outcomes
from bot.store.campaigns import Session
from bot.store.models import CampaignState, Finding, Side
from fuzzing.outcomes import Outcome, Verdict


@step(CampaignState.COMPARING, to=(CampaignState.REDUCING,))
def compare(context: Context) -> None:
    """Reads outcomes and repeats of both sides; writes base's outcomes, and the findings."""
    config, head, base = load_environments(context)
    runs: dict[str, int] = {}
    if base is not None:
        at_base = ShardOptions(base, context.step.state.value, config.budget)
        # One shard for both: each more is one more start of the compiler.
        run_pending(context, config, at_base, head.key, [Verdict.UNSUPPORTED, Verdict.PASS], by_verdict=True)
        measured = _noise_is_measured(context, head)
        runs = _repeat_changes(context, config, head, base)
        if runs and not measured:
            measure_noise(context, config, head)
    out_of_reach = find_out_of_reach(context, config, head, base)
    found = list(_findings(context, config, head, base, runs, out_of_reach))
    with context.transaction() as (session, campaign):
        findings.replace(session, campaign.id, found)
        context.move(campaign, CampaignState.REDUCING)


def _noise_is_measured(context: Context, head: Environment) -> bool:
    with context.reading() as (session, campaign):
        _, runs = outcomes.noise(session, campaign.id, head.key)
        return runs > 0


def _repeat_changes(context: Context, config: Config, head: Environment, base: Environment) -> dict[str, int]:
    """Case → runs on each side that confirm its change.

    The first case of each pair of signatures runs `config.repeats` times. If the change stays, the others of
    the pair run once.
    """
    pairs = _changed_cases(context, head, base)
    runs = dict.fromkeys((cases[0] for cases in pairs), config.repeats)
    _repeat_on_both_sides(context, config, (head, base), runs)
    for first, *others in pairs:
        runs |= dict.fromkeys(
            others, 1 if _is_repeated(context, config, head, base, first) else config.repeats
        )
    _repeat_on_both_sides(context, config, (head, base), runs)
    return runs


def _changed_cases(context: Context, head: Environment, base: Environment) -> list[list[str]]:
    """The cases whose evidence differs beside the verdict, those of one pair of signatures together."""
    pairs: dict[tuple[str, str], list[str]] = defaultdict(list)
    with context.reading() as (session, campaign):
        for at_head, at_base in outcomes.outcome_pairs(session, campaign.id, head.key, base.key):
            if at_base is not None and describe_change(at_head, at_base):
                both = (signature_key(context, at_head), signature_key(context, at_base))
                pairs[both].append(at_head.case)
    return list(pairs.values())


def _repeat_on_both_sides(
    context: Context, config: Config, sides: tuple[Environment, Environment], runs: Mapping[str, int]
) -> None:
    for environment in sides:
        at_side = ShardOptions(environment, context.step.state.value, config.budget)
        for count in sorted(set(runs.values()), reverse=True):
            repeat(context, config, at_side, [case for case in runs if runs[case] == count], runs=count)


def _is_repeated(context: Context, config: Config, head: Environment, base: Environment, case: str) -> bool:
    with context.reading() as (session, campaign):
        at_head, at_base = (outcomes.get(session, case, side.key) for side in (head, base))
        assert at_head is not None
        return bool(repeated_change(session, campaign.id, config.repeats, at_head, at_base))


def _findings(
    context: Context,
    config: Config,
    head: Environment,
    base: Environment | None,
    runs: Mapping[str, int],
    out_of_reach: Mapping[str, str],
) -> Iterator[Finding]:
    """The findings.

    runs          those that confirm a change, where they are not `config.repeats`
    out_of_reach  as `find_out_of_reach`
    """
    with context.reading() as (session, campaign):
        head_runs = outcomes.agreement(session, campaign.id, Side.HEAD, head.key)
        base_runs = {} if base is None else outcomes.agreement(session, campaign.id, Side.BASE, base.key)
        outcome_pairs = outcomes.outcome_pairs(
            session, campaign.id, head.key, None if base is None else base.key
        )
        needed = needed_repeats(context, session, campaign.id, config.repeats, head, base)
        for at_head, at_base in outcome_pairs:
            seen = CaseResults(
                head=at_head,
                base=at_base,
                head_runs=RerunCounts(*head_runs.get(at_head.case, (0, 0))),
                base_runs=RerunCounts(*base_runs.get(at_head.case, (0, 0))),
                repeats=needed(at_head),
                compared=base is not None,
                reruns=_reruns(session, campaign.id, at_head, head_runs),
                change=repeated_change(
                    session, campaign.id, runs.get(at_head.case, config.repeats), at_head, at_base
                ),
                out_of_reach=out_of_reach.get(at_head.case, ""),
            )
            finding = _finding(context, seen)
            if finding is not None:
                yield finding


def _reruns(
    session: Session, campaign_id: int, at_head: Outcome, runs: dict[str, tuple[int, int]]
) -> tuple[Outcome, ...]:
    """The fresh runs at head if they disagree; only then are they needed."""
    agreed, total = runs.get(at_head.case, (0, 0))
    if agreed == total:
        return ()
    return tuple(outcomes.repeats(session, campaign_id, Side.HEAD, at_head.case))


def _finding(context: Context, seen: CaseResults) -> Finding | None:
    classified = classify(seen)
    if classified is None:
        return None
    accused = seen.head if seen.head.verdict is classified.verdict else seen.base
    assert accused is not None
    return make_finding(classified, context.campaign_id, accused.case, signature_key(context, accused))
