"""Current work and its results, from all tables; for status pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bot.store import audit, bug_details, findings, outbox, progress, proposals, status
from bot.store.bug_states import RESOLVED
from bot.store.models import (
    AuditEvent,
    Bug,
    Campaign,
    CampaignState,
    Classification,
    Effect,
    EffectState,
    KillSwitch,
    Proposal,
    Target,
    name_of,
)

#: Rows shown on a page.
MAX_CAMPAIGNS, MAX_AUDIT_EVENTS, MAX_EFFECTS, MAX_PROPOSALS = 20, 60, 30, 30
_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)
_SENT = "sent"  # GitHub shows these itself
_RESOLVED = tuple(state.value for state in RESOLVED)


@dataclass(frozen=True)
class RunningCampaign:
    """A campaign that has not ended.

    waiting      whether it has not started
    done, total  of the current step; total is 0 if unknown
    """

    campaign: Campaign
    waiting: bool
    done: int
    total: int
    note: str


@dataclass(frozen=True)
class EndedCampaign:
    """A campaign that has ended: number of findings by classification, new ones first."""

    campaign: Campaign
    counts: Mapping[Classification, int]


@dataclass(frozen=True)
class TargetSummary:
    """One repository, summarized.

    mode      `reports.mode` of its last campaign, "" before the first
    bugs      number of unresolved bugs
    last      its last campaign that has ended
    """

    target: Target
    mode: str
    running: int
    bugs: int
    last: EndedCampaign | None


@dataclass(frozen=True)
class Overview:
    """Everything shown about one repository.

    held, failed  effects that wait for a person, and that GitHub refused, each with its reason
    retrying      effects to be retried, each with its reason
    proposals     the last tests that were proposed, newest first
    audit_events  newest first, without sent effects, which GitHub shows
    """

    watched: TargetSummary
    status: status.TargetStatus
    running: Sequence[RunningCampaign]
    ended: Sequence[EndedCampaign]
    bugs: Sequence[Bug]
    held: list[Effect]
    failed: list[Effect]
    retrying: list[Effect]
    kill_switches: Sequence[KillSwitch]
    proposals: Sequence[Proposal]
    audit_events: Sequence[AuditEvent]


def watched(session: Session, *, public: bool) -> list[TargetSummary]:
    """Known repositories by name; only public ones if `public`."""
    query = select(Target).order_by(name_of(Target.name))
    if public:
        query = query.where(Target.private.is_(False))
    return [_watched(session, target) for target in session.scalars(query)]


def of_target(session: Session, name: str, at: datetime) -> Overview | None:
    """Overview of one repository; None if it is unknown."""
    target = session.get(Target, name)
    if target is None:
        return None
    return Overview(
        watched=_watched(session, target),
        status=status.of_target(session, name, at),
        running=[_running(session, one) for one in _campaigns(session, name, ended=False)],
        ended=[_ended(session, one) for one in _campaigns(session, name, ended=True)],
        bugs=bug_details.all_bugs(session, name, ""),
        held=_effects(session, name, EffectState.HELD),
        failed=_effects(session, name, EffectState.FAILED),
        retrying=_effects(session, name, EffectState.PENDING, EffectState.SENDING, with_reason=True),
        kill_switches=[
            one for one in outbox.kill_switches(session) if one.name in (outbox.ALL_TARGETS, name)
        ],
        proposals=proposals.newest(session, name, MAX_PROPOSALS),
        audit_events=[
            event for event in audit.of_target(session, name, 3 * MAX_AUDIT_EVENTS) if event.action != _SENT
        ][:MAX_AUDIT_EVENTS],
    )


def _watched(session: Session, target: Target) -> TargetSummary:
    last = _campaigns(session, target.name, ended=True, limit=1)
    newest = select(Campaign.config).where(Campaign.target == target.name).order_by(Campaign.id.desc())
    # The newest campaign may not have read its configuration yet.
    config: dict[str, Any] = next(filter(None, session.scalars(newest.limit(MAX_CAMPAIGNS))), {})
    unfinished = (Campaign.target == target.name, Campaign.state.in_(_UNFINISHED))
    alive = (Bug.target == target.name, Bug.state.not_in(_RESOLVED))
    return TargetSummary(
        target=target,
        mode=str((config.get("reports") or {}).get("mode", "")),
        running=session.scalar(select(func.count(Campaign.id)).where(*unfinished)) or 0,
        bugs=session.scalar(select(func.count(Bug.id)).where(*alive)) or 0,
        last=_ended(session, last[0]) if last else None,
    )


def _campaigns(session: Session, name: str, *, ended: bool, limit: int = MAX_CAMPAIGNS) -> list[Campaign]:
    """The campaigns, newest first."""
    here = Campaign.state.not_in(_UNFINISHED) if ended else Campaign.state.in_(_UNFINISHED)
    query = select(Campaign).where(Campaign.target == name, here)
    return list(session.scalars(query.order_by(Campaign.id.desc()).limit(limit)))


def _running(session: Session, campaign: Campaign) -> RunningCampaign:
    done, total, note = progress.step(session, campaign)
    return RunningCampaign(campaign, not campaign.owner, done, total, note)


def _ended(session: Session, campaign: Campaign) -> EndedCampaign:
    counts = findings.counts(session, campaign.id)
    return EndedCampaign(campaign, {one: counts[one] for one in Classification if one in counts})


def _effects(session: Session, name: str, *states: EffectState, with_reason: bool = False) -> list[Effect]:
    query = select(Effect).where(Effect.target == name, Effect.state.in_([one.value for one in states]))
    if with_reason:
        query = query.where(Effect.reason != "")
    return list(session.scalars(query.order_by(Effect.created_at.desc(), Effect.key).limit(MAX_EFFECTS)))
