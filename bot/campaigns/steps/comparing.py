"""Comparing: run base where it matters, repeat what looks like a regression, and write the findings.

What failed at head goes first, then what head no longer supports, then, to tell what got fixed, the rest.
All of it together may take as long as the head was allowed to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bot.campaigns.context import Context
from bot.campaigns.judging import Runs, Seen, judge
from bot.campaigns.provenance import origin
from bot.campaigns.registry import step
from bot.campaigns.repeating import repeat
from bot.campaigns.services import Config
from bot.campaigns.shards import Job, Place, places, run_pending
from bot.campaigns.steps.confirming import ACCUSING
from bot.store import findings, outcomes
from bot.store.models import CampaignState, Finding, Side
from fuzzing.outcomes import Outcome, Verdict


@step(CampaignState.COMPARING, to=(CampaignState.REPORTING,))
def compare(context: Context) -> None:
    """Reads outcomes and repeats of both sides; writes base's outcomes, its repeats, and the findings."""
    config, head, base = places(context)
    if base is not None:
        _run_base(context, config, head, base)
    found = list(_findings(context, config, head, base))
    with context.transaction() as (session, campaign):
        findings.replace(session, campaign.id, found)
        context.move(campaign, CampaignState.REPORTING)


def _run_base(context: Context, config: Config, head: Place, base: Place) -> None:
    step_name = context.step.state.value
    at_base, at_head = Job(base, step_name, config.budget), Job(head, step_name, config.budget)
    run_pending(context, config, at_base, head.key, ACCUSING)
    repeat(context, config, at_base, _passing_at_base(context, config, head, base, _confirmed))
    run_pending(context, config, at_base, head.key, [Verdict.UNSUPPORTED])
    lost = _passing_at_base(context, config, head, base, _unsupported)
    repeat(context, config, at_base, lost)
    repeat(context, config, at_head, lost)
    run_pending(context, config, at_base, head.key, [Verdict.PASS])


def _passing_at_base(
    context: Context,
    config: Config,
    head: Place,
    base: Place,
    wanted: Callable[[Outcome, Runs, int], bool],
) -> list[str]:
    """The cases that `wanted(outcome, runs, repeats)` chooses at head and that pass at base."""
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(session, campaign.id, Side.HEAD, head.key)
        return [
            at_head.case
            for at_head, at_base in outcomes.pairs(session, campaign.id, head.key, base.key)
            if at_base is not None
            and at_base.verdict is Verdict.PASS
            and wanted(at_head, Runs(*runs.get(at_head.case, (0, 0))), config.repeats)
        ]


def _confirmed(outcome: Outcome, runs: Runs, repeats: int) -> bool:
    return outcome.verdict.accuses and runs.agreed == runs.total >= repeats


def _unsupported(outcome: Outcome, _runs: Runs, _repeats: int) -> bool:
    return outcome.verdict is Verdict.UNSUPPORTED


def _findings(context: Context, config: Config, head: Place, base: Place | None) -> Iterator[Finding]:
    with context.reading() as (session, campaign):
        head_runs = outcomes.agreement(session, campaign.id, Side.HEAD, head.key)
        base_runs = {} if base is None else outcomes.agreement(session, campaign.id, Side.BASE, base.key)
        pairs = outcomes.pairs(session, campaign.id, head.key, None if base is None else base.key)
        for at_head, at_base in pairs:
            seen = Seen(
                head=at_head,
                base=at_base,
                head_runs=Runs(*head_runs.get(at_head.case, (0, 0))),
                base_runs=Runs(*base_runs.get(at_head.case, (0, 0))),
                repeats=config.repeats,
                compared=base is not None,
            )
            finding = _finding(context, seen)
            if finding is not None:
                yield finding


def _finding(context: Context, seen: Seen) -> Finding | None:
    judgement = judge(seen)
    if judgement is None:
        return None
    accused = seen.head if seen.head.verdict is judgement.verdict else seen.base
    assert accused is not None
    signature = context.services.sign(accused, origin(context.corpus, accused.case).operator)
    return Finding(
        campaign_id=context.campaign_id,
        case_id=accused.case,
        standing=judgement.standing.value,
        verdict=judgement.verdict.value,
        signature=signature.key,
        head_failed=judgement.head[0],
        head_runs=judgement.head[1],
        base_failed=judgement.base[0],
        base_runs=judgement.base[1],
        reason=judgement.reason,
    )
