"""The check run of a campaign that has not ended.

It lists failures at head, first the regressions that fresh runs of both sides have confirmed. It does not
blame the change for others, since base may not have run yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.campaigns.plan.planner import read_ranking
from bot.campaigns.plan.ranking import Ranking
from bot.reports.check_runs import CHECK_RUN, build_payload, check_run_key
from bot.reports.issue import collapse_blank_lines
from bot.reports.plan_summary import describe_ranking
from bot.reports.templates import pluralize, render, seconds, thousands
from bot.reports.verdict_chart import VERDICT_ORDER, verdict_name
from bot.store.models import Campaign, CampaignState
from bot.store.outbox import EffectDraft
from fuzzing.outcomes import Verdict


@dataclass(frozen=True)
class FailingCase:
    """A case that fails at head.

    base       its result at base, "" while unknown
    confirmed  whether fresh runs of both sides show that it is a regression
    """

    test: str
    operator: str
    summary: str
    base: str
    confirmed: bool = False


@dataclass(frozen=True)
class TouchedOperator:
    """An operator that the change touches, and the strongest evidence."""

    operator: str
    why: str


@dataclass(frozen=True)
class CampaignProgress:
    """A running campaign, read from its rows.

    stable_name     the target's name in keys (`bot.store.targets.stable_name`)
    queue_position  campaigns ahead of it, of all targets; None once it runs
    planned         cases in the plan, 0 before there is one; `done` of them have an outcome at head
    compared        cases with an outcome at base
    counts          verdict at head → cases
    failing         the first failing cases, confirmed ones first, then in rank order; of `failures` in all
    regressions     cases that are confirmed regressions
    touched         operators that the change touches, the most certain first
    remaining_s     estimated seconds to run the rest at head, None if unknown
    toolchains      "head" and "base" with the labels of installed toolchains
    """

    campaign: int
    target: str
    stable_name: str
    pull: int | None
    head: str
    base: str
    state: CampaignState
    started_at: datetime
    queue_position: int | None = None
    planned: int = 0
    done: int = 0
    compared: int = 0
    counts: Mapping[Verdict, int] = field(default_factory=dict)
    failing: Sequence[FailingCase] = ()
    failures: int = 0
    regressions: int = 0
    ranking: Ranking | None = None
    touched: Sequence[TouchedOperator] = ()
    remaining_s: float | None = None
    budget_s: float = 0.0
    toolchains: Sequence[tuple[str, str]] = ()

    @classmethod
    def queued(cls, campaign: Campaign, stable_name: str, queue_position: int) -> CampaignProgress:
        """A queued campaign."""
        return cls(
            campaign=campaign.id,
            target=campaign.target,
            stable_name=stable_name,
            pull=campaign.pull,
            head=campaign.head,
            base=campaign.base,
            state=CampaignState.PLANNING,
            started_at=campaign.created_at,
            queue_position=queue_position,
            ranking=read_ranking(campaign.plan or {}),
            budget_s=float(campaign.config.get("budget", 0.0)),
        )


def draft_check_run(progress: CampaignProgress) -> EffectDraft:
    """The current check run; posting it again edits it."""
    run = check_run_key(progress.stable_name, progress.head, progress.campaign)
    body = build_payload(
        progress.head,
        run,
        title(progress),
        collapse_blank_lines(render("reports/progress.md.j2", **_context(progress))),
        "",
        status="queued" if progress.queue_position is not None else "in_progress",
        started=progress.started_at,
    )
    return EffectDraft(CHECK_RUN, run, progress.target, body, editable=True)


def draft_ended_early(progress: CampaignProgress, reason: str) -> EffectDraft:
    """The check run of a campaign that ended without a result."""
    run = check_run_key(progress.stable_name, progress.head, progress.campaign)
    summary = collapse_blank_lines(render("reports/ended_early.md.j2", progress=progress, reason=reason))
    body = build_payload(
        progress.head,
        run,
        "Ended early: no result",
        summary,
        "",
        conclusion="cancelled" if progress.state is CampaignState.SUPERSEDED else "neutral",
        started=progress.started_at,
    )
    return EffectDraft(CHECK_RUN, run, progress.target, body, editable=True)


def title(progress: CampaignProgress) -> str:
    """The state of the campaign in a line."""
    if progress.queue_position is not None:
        before = (
            f"{pluralize(progress.queue_position, 'campaign')} ahead" if progress.queue_position else "next"
        )
        return f"Queued: {before}"
    ran, failing = pluralize(progress.done, "case"), thousands(progress.failures)
    found = f"{pluralize(progress.regressions, 'regression')} so far. " if progress.regressions else ""
    return found + {
        CampaignState.PLANNING: "Planning: collecting and ranking cases",
        CampaignState.PROVISIONING: f"Installing toolchains for {pluralize(progress.planned, 'case')}",
        CampaignState.RUNNING: f"Running: {progress.done:,} of {pluralize(progress.planned, 'case')}, "
        f"{failing} {'fails' if progress.failures == 1 else 'fail'} so far",
        CampaignState.CONFIRMING: f"Repeating failures: {failing} of {ran}",
        CampaignState.COMPARING: f"Comparing with base: {thousands(progress.compared)} of {ran}",
        CampaignState.REDUCING: f"Reducing failures: {failing} of {ran}",
        CampaignState.REPORTING: "Writing the report",
    }.get(progress.state, progress.state.value)


def _context(progress: CampaignProgress) -> dict[str, Any]:
    steps = list(CampaignState)
    return {
        "progress": progress,
        "verdicts": [(verdict_name(v), progress.counts[v]) for v in VERDICT_ORDER if v in progress.counts],
        "order": describe_ranking(progress.ranking),
        "plan": _plan(progress),
        "state": progress.state.value,
        "steps": [
            (
                step.value,
                "done" if at < steps.index(progress.state) else "now" if step is progress.state else "",
            )
            for at, step in enumerate(steps)
            if not step.ended
        ],
        "more": max(0, progress.failures - len(progress.failing)),
    }


def _plan(progress: CampaignProgress) -> str:
    """What is planned, with an estimate of the time left; "" before there is a plan."""
    if not progress.planned:
        return ""
    budget = f" within a budget of {seconds(progress.budget_s)}" if progress.budget_s else ""
    text = f"{pluralize(progress.planned, 'case')} are planned{budget}, those most likely to "
    text += "fail first."
    if progress.remaining_s is not None:
        text += f" Running them takes about {seconds(progress.remaining_s)} more; repeats and base follow."
    return text
