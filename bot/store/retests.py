"""Retests: a bug's case run again on a later build."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, exists, func, or_, select
from sqlalchemy.orm import Session

from bot.store.models import Bug, BugState, Campaign, CampaignCase, Finding, OutcomeRow, Retest
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Verdict

#: States in which a bug is retested.
_RETESTABLE = (BugState.NEW.value, BugState.HELD.value, BugState.REPORTED.value, BugState.FIXED.value)


def add(session: Session, row: Retest) -> None:
    """Adds a retest with the bug's next number."""
    last = session.scalar(select(func.max(Retest.number)).where(Retest.bug_id == row.bug_id))
    row.number = 0 if last is None else last + 1
    session.add(row)
    session.flush()


def of_bug(session: Session, bug_id: int) -> Sequence[Retest]:
    """The retests of a bug, oldest first."""
    return session.scalars(select(Retest).where(Retest.bug_id == bug_id).order_by(Retest.number)).all()


def passed(row: Retest) -> bool:
    """Whether it shows that the bug is not on that build."""
    return row.control_passed and row.runs > 0 and row.failed == 0


def passed_since(session: Session, bug_id: int, *, excluding: int = -1) -> list[Retest]:
    """Retests that passed since the last failed one, oldest first; without number `excluding`."""
    rows = [row for row in of_bug(session, bug_id) if row.number != excluding]
    failed = [row.number for row in rows if row.failed]
    return [row for row in rows if passed(row) and row.number > max(failed, default=-1)]


def wanted(session: Session, campaign: Campaign, limit: int, since: datetime) -> list[Bug]:
    """Bugs to retest at a campaign's head: those of its branch that it did not see.

    A bug belongs to the branch on which it was last seen. Bugs that were tested on this commit or have a
    resolution are left out, and those that are not reported if they were seen or tested after `since`: each
    push meets tens of old failures, of which nobody waits to hear.
    """
    shown = exists().where(Finding.bug_id == Bug.id)
    seen = select(Finding.bug_id).where(Finding.campaign_id == campaign.id, Finding.bug_id.is_not(None))
    tested = select(Retest.bug_id).where(Retest.commit == campaign.head)
    lately = select(Retest.bug_id).where(Retest.at > since)
    query = (
        select(Bug)
        .join(Campaign, Campaign.id == Bug.campaign_id)
        .where(
            Bug.target == campaign.target,
            Campaign.ref == campaign.ref,
            Campaign.pull.is_(None),
            Bug.state.in_(_RETESTABLE),
            or_(Bug.case_id != "", shown),
            Bug.resolution == "",
            Bug.duplicate_of.is_(None),
            Bug.campaign_id != campaign.id,  # the last that saw it or a duplicate of it
            Bug.id.not_in(seen),
            Bug.id.not_in(tested),
            or_(Bug.state != BugState.NEW.value, and_(Bug.last_seen <= since, Bug.id.not_in(lately))),
        )
        .order_by(Bug.last_seen.desc(), Bug.id)
        .limit(limit)
    )
    return list(session.scalars(query))


def control(session: Session, campaign_id: int, key: CacheKey, excluding: str) -> str:
    """The first planned case that passed at the campaign's head; "" if there is none."""
    query = (
        select(CampaignCase.case_id)
        .join(OutcomeRow, OutcomeRow.case_id == CampaignCase.case_id)
        .where(
            CampaignCase.campaign_id == campaign_id,
            CampaignCase.case_id != excluding,
            OutcomeRow.toolchain == key.toolchain,
            OutcomeRow.backend == key.backend,
            OutcomeRow.device == key.device,
            OutcomeRow.configuration == key.configuration,
            OutcomeRow.verdict == Verdict.PASS.value,
        )
        .order_by(CampaignCase.rank)
        .limit(1)
    )
    return session.scalar(query) or ""
