"""The check run of a campaign that has not ended: where it is, what it has seen, when it will be done.

Nothing is accused here. What fails at head is listed as just that, for base may not have been asked yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.campaigns.plans import ranking_of
from bot.campaigns.ranking import Ranking
from bot.reports.check import CHECK_RUN, campaign_key, payload
from bot.reports.issue import tidy
from bot.reports.picture import ORDER, name_of
from bot.reports.planning import order_of
from bot.reports.templating import counted, render, seconds, thousands
from bot.store.models import Campaign, CampaignState
from bot.store.outbox import Draft
from fuzzing.outcomes import Verdict


@dataclass(frozen=True)
class Failing:
    """A case that fails at head; `base` is what the same case does there, "" while nobody knows."""

    test: str
    operator: str
    summary: str
    base: str


@dataclass(frozen=True)
class Touch:
    """An operator that the change touches, and the strongest reason to think so."""

    operator: str
    why: str


@dataclass(frozen=True)
class Underway:
    """A campaign at work, told from its rows.

    known_as     what keys call the target (`bot.store.targets.known_as`)
    waiting      campaigns before it, of all targets; None once it is at work
    planned      cases in the plan, 0 before there is one; `done` of them have an outcome at head
    compared     cases with an outcome at base
    counts       verdict at head → cases
    failing      the first of those that fail at head, in rank order, `failures` in all
    touched      what the change touches, the surest first
    left_s       seconds until what is to be run at head has been, None where it cannot be told
    toolchains   what runs: "head" and "base" with their labels, as far as they are made
    """

    campaign: int
    target: str
    known_as: str
    pull: int | None
    head: str
    base: str
    state: CampaignState
    started_at: datetime
    waiting: int | None = None
    planned: int = 0
    done: int = 0
    compared: int = 0
    counts: Mapping[Verdict, int] = field(default_factory=dict)
    failing: Sequence[Failing] = ()
    failures: int = 0
    ranking: Ranking | None = None
    touched: Sequence[Touch] = ()
    left_s: float | None = None
    budget_s: float = 0.0
    toolchains: Sequence[tuple[str, str]] = ()

    @classmethod
    def queued(cls, campaign: Campaign, known_as: str, waiting: int) -> Underway:
        """A campaign that nobody has begun."""
        return cls(
            campaign=campaign.id,
            target=campaign.target,
            known_as=known_as,
            pull=campaign.pull,
            head=campaign.head,
            base=campaign.base,
            state=CampaignState.PLANNING,
            started_at=campaign.created_at,
            waiting=waiting,
            ranking=ranking_of(campaign.plan or {}),
            budget_s=float(campaign.config.get("budget", 0.0)),
        )


def draft(seen: Underway) -> Draft:
    """The check run as it is now; posting it again changes it in place."""
    run = campaign_key(seen.known_as, seen.head, seen.campaign)
    body = payload(
        seen.head,
        run,
        title(seen),
        tidy(render("reports/underway.md.j2", **_context(seen))),
        "",
        status="queued" if seen.waiting is not None else "in_progress",
        started=seen.started_at,
    )
    return Draft(CHECK_RUN, run, seen.target, body, living=True)


def ended(seen: Underway, reason: str) -> Draft:
    """The check run of a campaign that ended before it could say anything of the change."""
    run = campaign_key(seen.known_as, seen.head, seen.campaign)
    summary = tidy(render("reports/ended.md.j2", seen=seen, reason=reason))
    body = payload(
        seen.head,
        run,
        "Ended early: nothing is said about the compiler",
        summary,
        "",
        conclusion="cancelled" if seen.state is CampaignState.SUPERSEDED else "neutral",
        started=seen.started_at,
    )
    return Draft(CHECK_RUN, run, seen.target, body, living=True)


def title(seen: Underway) -> str:
    """Where it is, in a line."""
    if seen.waiting is not None:
        before = f"{counted(seen.waiting, 'campaign')} before this one" if seen.waiting else "next to begin"
        return f"Queued: {before}"
    ran, failing = counted(seen.done, "case"), thousands(seen.failures)
    return {
        CampaignState.PLANNING: "Planning: collecting and ranking the cases",
        CampaignState.PROVISIONING: f"Making the toolchains for {counted(seen.planned, 'case')}",
        CampaignState.RUNNING: f"Running: {thousands(seen.done)} of {counted(seen.planned, 'case')}, "
        f"{failing} {'fails' if seen.failures == 1 else 'fail'} so far",
        CampaignState.CONFIRMING: f"Repeating what fails: {failing} of {ran}",
        CampaignState.COMPARING: f"Comparing with base: {thousands(seen.compared)} of {ran}",
        CampaignState.REDUCING: f"Making small what fails: {failing} of {ran}",
        CampaignState.REPORTING: "Writing the report",
    }.get(seen.state, seen.state.value)


def _context(seen: Underway) -> dict[str, Any]:
    steps = list(CampaignState)
    return {
        "seen": seen,
        "verdicts": [(name_of(v), seen.counts[v]) for v in ORDER if v in seen.counts],
        "order": order_of(seen.ranking),
        "plan": _plan(seen),
        "state": seen.state.value,
        "steps": [
            (step.value, "done" if at < steps.index(seen.state) else "now" if step is seen.state else "")
            for at, step in enumerate(steps)
            if not step.ended
        ],
        "more": max(0, seen.failures - len(seen.failing)),
    }


def _plan(seen: Underway) -> str:
    """What will run and until when, in a sentence or two; "" before there is a plan."""
    if not seen.planned:
        return ""
    budget = f", as far as the budget of {seconds(seen.budget_s)} goes" if seen.budget_s else ""
    told = (
        f"{counted(seen.planned, 'case')} are planned{budget}, in the order in which they are most likely to "
    )
    told += "find something early."
    if seen.left_s is not None:
        told += f" Running them takes about {seconds(seen.left_s)} more; repeats and base come after that."
    return told
