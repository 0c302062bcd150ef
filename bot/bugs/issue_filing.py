"""Decides before filing: which bugs are suppressed, and which checks an issue waits for.

In mode `auto` an issue is held for the job `issue_filing`, which searches GitHub for duplicates and runs the
case on the newest commit. In mode `held` it waits for a maintainer, whose `/assay upstream` requests the same
job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from bot.bugs import transitions
from bot.reports.report import idempotency_key
from bot.store import Session, bugs, campaigns, jobs, mutes, outbox
from bot.store.bugs import Sighting
from bot.store.models import Bug, BugState, Campaign, EffectState, SuppressionCause
from bot.store.outbox import ISSUE, EffectDraft

FILING, LOCALIZE = "issue_filing", "localize"
#: Why an issue is held during the checks, and after checks that failed.
CHECKING = "being checked before it is filed"
UNCHECKED = "could not be checked before it is filed"


def record_bug(
    session: Session,
    target: str,
    signature: str,
    title: str,
    operator: str,
    at: datetime,
    reason: str,
    by: Sighting,
) -> str:
    """Records a campaign's sighting of a bug; returns why nothing is filed, "" if it may be.

    operator  the operator of the failing program, for mutes
    reason    why no bug of this kind is filed
    """
    known = bugs.find(session, target, signature)
    before = BugState(known.state) if known is not None else None
    suppressed = reason or find_suppression(session, target, known, operator, at)
    bug = bugs.record_sighting(session, target, signature, title, at, suppressed, by)
    if before is None or by.pull or bug.resolution:
        return suppressed
    campaign = campaigns.get(session, by.campaign)
    if bug.duplicate_of is not None:
        _record_duplicate_sighting(session, bugs.canonical(session, bug), bug, campaign, at)
    else:
        transitions.handle_sighting(session, bug, before, campaign, at)
    return suppressed


def _record_duplicate_sighting(
    session: Session, first: Bug, bug: Bug, campaign: Campaign, at: datetime
) -> None:
    """Counts the sighting of a duplicate for the original bug."""
    bugs.mark_seen(first, campaign.id, at)
    if first.resolution:
        return
    before = BugState(first.state)
    why = f"its duplicate, bug {bug.id}, was seen after it was {before.value}"
    bugs.record_failure(session, first, why, campaign, at)
    transitions.handle_sighting(session, first, before, campaign, at)


def find_suppression(session: Session, target: str, bug: Bug | None, operator: str, at: datetime) -> str:
    """The mute or resolution that keeps a bug from being filed; "" for none."""
    if bug is not None and (why := _describe_resolution(session, bug)):
        return why
    mute = mutes.find_covering(session, target, operator, at)
    if mute is None:
        return ""
    return f"{mute.operator} is muted by {mute.by} until {mute.until:%Y-%m-%d}"


def _describe_resolution(session: Session, bug: Bug) -> str:
    """The resolution of a bug in words, "" for none."""
    if bug.duplicate_of is not None:
        first = bugs.canonical(session, bug)
        where = f"#{first.issue}" if first.issue is not None else f"bug {first.id}"
        return f"a duplicate of {where}"
    return f"marked {bug.resolution}" if bug.resolution else ""


def hold_for_checks(
    drafts: Iterable[EffectDraft], suppressed: Collection[str], mode: str
) -> list[EffectDraft]:
    """The drafts without suppressed bugs; in mode `auto`, issues wait for their checks."""
    allowed = [one for one in drafts if one.kind != ISSUE or one.signature not in suppressed]
    if mode != "auto":
        return allowed
    return [
        replace(one, hold=CHECKING, cause=SuppressionCause.CHECKING)
        if one.kind == ISSUE and not one.hold
        else one
        for one in allowed
    ]


def request_checks(
    session: Session,
    effect: str,
    target: str,
    bug: Bug | None,
    at: datetime,
    requested_by: str = "",
    number: int | None = None,
) -> None:
    """Enqueues the checks of a held issue, again if earlier ones ended.

    The localization of a reduced case is enqueued first: jobs of a target run in order, so the issue
    contains it.

    requested_by, number  who requested it in a comment, and the thread of the reply
    """
    if bug is not None and bug.case_id:
        name = f"{jobs.key_word(LOCALIZE)}:{bug.id}:{bug.case_id[:16]}"
        jobs.enqueue(session, LOCALIZE, target, name, at, bug_id=bug.id)
    name = idempotency_key(jobs.key_word(FILING), effect)
    known = jobs.of_key(session, name)
    if number is None and known is not None and jobs.is_unfinished(known):
        number = known.arguments.get("number")  # another requester waits for the reply
    jobs.enqueue(
        session,
        FILING,
        target,
        name,
        at,
        again=known is not None and (requested_by != "" or not jobs.is_unfinished(known)),
        bug_id=bug.id if bug is not None else None,
        arguments={"effect": effect} | ({"number": number} if number is not None else {}),
        requested_by=requested_by,
    )


def request_all_checks(
    session: Session, posted: Iterable[outbox.PostResult], drafts: Iterable[EffectDraft], at: datetime
) -> None:
    """Enqueues the checks of the issues that wait for them."""
    signatures = {draft.key: draft for draft in drafts if draft.kind == ISSUE}
    for one in posted:
        waits = one.state is EffectState.HELD and one.cause is SuppressionCause.CHECKING
        if one.key in signatures and waits:
            draft = signatures[one.key]
            request_checks(
                session, one.key, draft.target, bugs.find(session, draft.target, draft.signature), at
            )
