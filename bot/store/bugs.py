"""Bugs: one row for each signature of a target, with its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from bot.errors import UsageError
from bot.store import audit
from bot.store.audit import ASSAY
from bot.store.bug_states import RESOLVED, Event, next_state
from bot.store.campaigns import find as find_campaign
from bot.store.campaigns import on_branch
from bot.store.models import Bug, BugState, Campaign, Classification, Finding

_WAITING = (BugState.NEW, BugState.HELD, BugState.REPORTED)
#: The fact that counts a bug's occurrences.
_OCCURRENCE = "occurrence"


@dataclass(frozen=True)
class Sighting:
    """A campaign that saw a bug, and its data about the bug.

    pull    whether the campaign tested a pull request or a merge group
    case    the reduced case, "" if there is none; backend, device and configuration are how it runs
    traits  of that case, as `fuzzing.triage.traits.Traits`
    fields  the parts of the signature, which explain other failures of this bug
    """

    campaign: int
    pull: bool = False
    case: str = ""
    backend: str = ""
    device: str = ""
    configuration: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


def find(session: Session, target: str, signature: str) -> Bug | None:
    """The bug of this signature, if the target has one."""
    query = select(Bug).where(Bug.target == target, Bug.signature == signature)
    return session.scalars(query).one_or_none()


def record_sighting(
    session: Session,
    target: str,
    signature: str,
    title: str,
    at: datetime,
    reason: str = "",
    by: Sighting | None = None,
) -> Bug:
    """Records that a campaign saw the signature at `at`; returns its bug, created if it is new.

    reason   why the bug is not reported, "" if an issue follows; recorded only while no issue exists.
             A fixed bug starts a new occurrence, unless it has a resolution or the campaign began
             before the fix.
    by       the campaign. A pull request's campaign does not change a known bug: it is not merged.
    """
    bug = find(session, target, signature)
    if bug is None:
        bug = _add(session, target, signature, title, at)
    elif by is not None and by.pull:
        return bug
    if by is not None:
        _update_case(bug, by)
        mark_seen(bug, by.campaign, at)
    bug.last_seen = max(bug.last_seen, at)
    before = bug.state
    if not bug.resolution:
        why, campaign = (
            f"seen again after it was {before}",
            session.get(Campaign, by.campaign) if by else None,
        )
        record_failure(session, bug, why, campaign, at)
    if reason and bug.state == BugState.NEW.value and bug.reason != reason:
        bug.reason = reason
        audit.record(session, target, "silent", audit_subject(bug), reason, at)
    return bug


def record_failure(session: Session, bug: Bug, why: str, by: Campaign | None, at: datetime) -> None:
    """Records a failure in a campaign; ignored if the campaign was requested before the bug was resolved.

    A campaign may take hours, and the bug may be fixed or its issue closed meanwhile.
    """
    over = (
        audit.last(session, bug.target, audit_subject(bug), bug.state)
        if BugState(bug.state) in RESOLVED
        else None
    )
    if over is None or by is None or by.created_at >= over.at:
        apply_event(session, bug, Event.FAILED, why, at)


def apply_event(
    session: Session,
    bug: Bug,
    event: Event,
    reason: str,
    at: datetime,
    *,
    actor: str = ASSAY,
    evidence: Mapping[str, Any] | None = None,
) -> bool:
    """Applies an event; returns whether the state changed.

    A change of state sets the bug's reason and is recorded in the audit. Otherwise both stay.
    """
    before = BugState(bug.state)
    now = next_state(before, event, issue=bug.issue is not None)
    if now is before:
        return False
    bug.state, bug.reason = now.value, reason
    if before in RESOLVED and now not in RESOLVED:
        _start_occurrence(bug)
    facts = {"from": before.value, "event": event.value, **(evidence or {})}
    audit.record(session, bug.target, now.value, audit_subject(bug), reason, at, actor=actor, evidence=facts)
    return True


def occurrence(bug: Bug) -> int:
    """The number of the current occurrence: 2 after the bug was resolved and failed again."""
    return int(bug.facts.get(_OCCURRENCE, 1))


def _start_occurrence(bug: Bug) -> None:
    """Starts the next occurrence; data about when and where the last one began is dropped."""
    kept = {name: value for name, value in bug.facts.items() if name != "bisection"}
    bug.facts = kept | {_OCCURRENCE: occurrence(bug) + 1}


def audit_subject(bug: Bug) -> str:
    """The audit subject of a bug."""
    return f"bug:{bug.id}"


def _add(session: Session, target: str, signature: str, title: str, at: datetime) -> Bug:
    bug = Bug(target=target, signature=signature, title=title, first_seen=at, last_seen=at)
    bug.state, bug.reason = BugState.NEW.value, ""
    try:
        with session.begin_nested():
            session.add(bug)
    except IntegrityError:  # another campaign of this target inserted it first
        return session.scalars(select(Bug).where(Bug.target == target, Bug.signature == signature)).one()
    audit.record(session, target, bug.state, audit_subject(bug), f"found: {title}", at)
    return bug


def _update_case(bug: Bug, by: Sighting) -> None:
    """Stores the campaign's data, and its case unless the known case needs less to run."""
    if by.fields and "signature" not in bug.facts:
        bug.facts = bug.facts | {"signature": dict(by.fields)}
    if by.case and (not bug.case_id or _count_needs(by.traits) < _count_needs(bug.traits)):
        _set_case(bug, by)


def mark_seen(bug: Bug, campaign: int, at: datetime) -> None:
    """Records that a campaign saw the bug or a duplicate of it.

    A campaign that was created before the last one that saw the bug does not replace it.
    """
    if bug.campaign_id != campaign:
        bug.campaign_id, bug.seen = max(bug.campaign_id or 0, campaign), bug.seen + 1
    bug.last_seen = max(bug.last_seen, at)


def _set_case(bug: Bug, by: Sighting) -> None:
    bug.case_id, bug.backend, bug.device = by.case, by.backend, by.device
    bug.configuration, bug.traits = by.configuration, dict(by.traits)
    bug.facts = bug.facts | {"signature": dict(by.fields)}


def _count_needs(traits: Mapping[str, Any]) -> int:
    return len(traits.get("needs", ()))


def hold(session: Session, bug_id: int, reason: str, at: datetime) -> None:
    """Marks the bug's issue as waiting; `reason` is what it waits for."""
    _apply_issue_event(session, session.get_one(Bug, bug_id), Event.HELD, reason, at)


def mark_reported(session: Session, bug_id: int, issue: int | None, reason: str, at: datetime) -> None:
    """Marks the bug's issue as published; `issue` is its number, None for a dry run."""
    bug = session.get_one(Bug, bug_id)
    bug.issue = issue if issue is not None else bug.issue
    _apply_issue_event(session, bug, Event.REPORTED, reason, at)


def mark_unreported(session: Session, bug_id: int, reason: str, at: datetime) -> None:
    """Marks the bug's issue as not sent, or to be sent again."""
    _apply_issue_event(session, session.get_one(Bug, bug_id), Event.UNSENT, reason, at)


def _apply_issue_event(session: Session, bug: Bug, event: Event, reason: str, at: datetime) -> None:
    """Applies an issue's event; sets the bug's reason even if the state stays, unless it is resolved."""
    if (
        apply_event(session, bug, event, reason, at)
        or BugState(bug.state) in RESOLVED
        or bug.reason == reason
    ):
        return
    bug.reason = reason
    audit.record(session, bug.target, bug.state, audit_subject(bug), reason, at)


def of_target(session: Session, target: str) -> list[Bug]:
    """The target's bugs, newest first."""
    query = select(Bug).where(Bug.target == target).order_by(Bug.last_seen.desc(), Bug.id.desc())
    return list(session.scalars(query))


def signatures_to_announce(session: Session, found: Iterable[Bug]) -> Iterator[str]:
    """The signatures of resolved bugs and of those that no campaign of a branch has seen."""
    for bug in found:
        by = session.get(Campaign, bug.campaign_id) if bug.campaign_id is not None else None
        if BugState(bug.state) in RESOLVED or (by is not None and not on_branch(by.pull, by.ref)):
            yield bug.signature


def unseen_since(session: Session, at: datetime, after: int, limit: int) -> list[Bug]:
    """Unresolved and fixed bugs not seen since `at`, with ids above `after`, by id.

    Excludes bugs with a resolution and duplicates.
    """
    waiting = [state.value for state in (*_WAITING, BugState.FIXED)]
    query = select(Bug).where(Bug.state.in_(waiting), Bug.last_seen < at, Bug.id > after)
    query = query.where(Bug.resolution == "", Bug.duplicate_of.is_(None))
    return list(session.scalars(query.order_by(Bug.id).limit(limit)))


def of_issue(session: Session, target: str, issue: int) -> Bug | None:
    """The bug of this issue of the target; None if the issue is not ours."""
    return session.scalars(select(Bug).where(Bug.target == target, Bug.issue == issue)).first()


def set_fact(session: Session, bug: Bug, what: str, facts: Any) -> None:
    """Stores facts about a bug under a name, replacing earlier ones."""
    bug.facts = {**bug.facts, what: facts}
    session.flush()


def replace_case(session: Session, bug: Bug, by: Sighting) -> bool:
    """Replaces the bug's case by a smaller one that needs no more to run; returns whether it did."""
    if bug.case_id and bug.traits and _count_needs(by.traits) > _count_needs(bug.traits):
        return False
    before = bug.case_id
    _set_case(bug, by)
    session.flush()
    return bug.case_id != before


def of_id(session: Session, bug_id: int | None) -> Bug | None:
    """The bug of this id, if there is one."""
    return session.get(Bug, bug_id) if bug_id is not None else None


def set_resolution(session: Session, bug: Bug, resolution: str, reason: str) -> None:
    """Sets a maintainer's resolution, such as "invalid"; "" removes it."""
    bug.resolution, bug.reason = resolution, reason
    session.flush()


def canonical(session: Session, bug: Bug) -> Bug:
    """The end of the bug's chain of duplicates; the bug itself if it is no duplicate."""
    while bug.duplicate_of is not None:
        bug = session.get_one(Bug, bug.duplicate_of)
    return bug


def duplicate(session: Session, bug: Bug, of: Bug | None, reason: str) -> None:
    """Makes `bug` a duplicate of another bug of its target, or of none.

    The original takes over when the duplicate was seen, and keeps it if the mark is removed. Raises
    UsageError for a cycle.
    """
    if of is not None:
        first = canonical(session, of)
        if first.id == bug.id:
            raise UsageError("that one is a duplicate of this one already; `/assay undup` there first")
        _copy_last_sighting(session, first, bug)
    bug.duplicate_of, bug.reason = (of.id if of is not None else None), reason
    session.flush()


def _copy_last_sighting(session: Session, first: Bug, duplicate: Bug) -> None:
    """Copies when a duplicate was last seen, unless only a pull request showed it.

    The count of campaigns stays, since some may have seen both.
    """
    by = find_campaign(session, duplicate.campaign_id)
    if by is not None and not on_branch(by.pull, by.ref):
        return
    first.campaign_id = max(first.campaign_id or 0, duplicate.campaign_id or 0) or None
    first.last_seen = max(first.last_seen, duplicate.last_seen)


def of_pull(session: Session, target: str, pull: int) -> list[Bug]:
    """The bugs that are new in a pull request's newest campaign, by first sighting."""
    newest = (
        select(Campaign.id)
        .where(Campaign.target == target, Campaign.pull == pull)
        .order_by(Campaign.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    found = select(Finding.signature).where(
        Finding.campaign_id == newest, Finding.classification == Classification.REGRESSION.value
    )
    query = select(Bug).where(Bug.target == target, Bug.signature.in_(found))
    return list(session.scalars(query.order_by(Bug.id)))
