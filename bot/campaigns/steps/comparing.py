"""Comparing: runs base on the other cases, to find what was fixed or lost support; writes the findings.

Limited to the campaign's budget.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.campaigns.classify.classification import CaseResults, RerunCounts, classify, make_finding
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.registry import step
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
    if base is not None:
        at_base = ShardOptions(base, context.step.state.value, config.budget)
        for verdict in (Verdict.UNSUPPORTED, Verdict.PASS):
            run_pending(context, config, at_base, head.key, [verdict])
    found = list(_findings(context, config, head, base))
    with context.transaction() as (session, campaign):
        findings.replace(session, campaign.id, found)
        context.move(campaign, CampaignState.REDUCING)


def _findings(
    context: Context, config: Config, head: Environment, base: Environment | None
) -> Iterator[Finding]:
    with context.reading() as (session, campaign):
        head_runs = outcomes.agreement(session, campaign.id, Side.HEAD, head.key)
        base_runs = {} if base is None else outcomes.agreement(session, campaign.id, Side.BASE, base.key)
        outcome_pairs = outcomes.outcome_pairs(
            session, campaign.id, head.key, None if base is None else base.key
        )
        for at_head, at_base in outcome_pairs:
            seen = CaseResults(
                head=at_head,
                base=at_base,
                head_runs=RerunCounts(*head_runs.get(at_head.case, (0, 0))),
                base_runs=RerunCounts(*base_runs.get(at_head.case, (0, 0))),
                repeats=config.repeats,
                compared=base is not None,
                reruns=_reruns(session, campaign.id, at_head, head_runs),
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
    case_origin = origin(context.corpus, accused.case)
    signature = context.services.sign(accused, case_origin.operator, case_origin.frontend)
    return make_finding(classified, context.campaign_id, accused.case, signature.key)
