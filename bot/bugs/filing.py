"""Before an issue is filed: what is not to be heard of, and what has to be checked right before it goes out.

In mode `auto` an issue waits, held, for the job `filing`: it looks for the same on GitHub and runs the case
on the newest commit. In mode `held` it waits for a maintainer, whose `/assay upstream` asks for the same job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from bot.bugs import changing
from bot.reports.report import key
from bot.store import Session, bugs, campaigns, jobs, mutes, outbox
from bot.store.bugs import Sighting
from bot.store.models import Bug, BugState, Campaign, Cause, EffectState
from bot.store.outbox import ISSUE, Draft

FILING, LOCALISE = "filing", "localise"
#: Why an issue is held for the moment, and why it still is where the checks came to nothing.
CHECKING = "being checked before it is filed"
UNCHECKED = "could not be checked before it is filed"


def saw(
    session: Session,
    target: str,
    signature: str,
    title: str,
    operator: str,
    at: datetime,
    reason: str,
    by: Sighting,
) -> str:
    """A campaign saw a bug: its row, what its issue is told, and why nothing is filed, "" if it may be.

    operator  what the failing program is about, for mutes
    reason    why nothing is filed about any bug of this kind
    """
    known = bugs.find(session, target, signature)
    before = BugState(known.state) if known is not None else None
    quiet = reason or why_quiet(session, target, known, operator, at)
    bug = bugs.see(session, target, signature, title, at, quiet, by)
    if before is None or by.pull or bug.ruling:
        return quiet
    campaign = campaigns.get(session, by.campaign)
    if bug.duplicate_of is not None:
        _saw_first(session, bugs.canonical(session, bug), bug, campaign, at)
    else:
        changing.seen(session, bug, before, campaign, at)
    return quiet


def _saw_first(session: Session, first: Bug, bug: Bug, campaign: Campaign, at: datetime) -> None:
    """What is seen of a duplicate happens to the bug that it is."""
    bugs.sighted(first, campaign.id, at)
    if first.ruling:
        return
    before = BugState(first.state)
    why = f"its duplicate, bug {bug.id}, was seen after it was {before.value}"
    bugs.again(session, first, why, campaign, at)
    changing.seen(session, first, before, campaign, at)


def why_quiet(session: Session, target: str, bug: Bug | None, operator: str, at: datetime) -> str:
    """Why nothing is to be filed of a bug, as people want it; "" where they said nothing of it."""
    if bug is not None and (why := _ruled(session, bug)):
        return why
    mute = mutes.over(session, target, operator, at)
    if mute is None:
        return ""
    return f"{mute.operator} is muted by {mute.by} until {mute.until:%Y-%m-%d}"


def _ruled(session: Session, bug: Bug) -> str:
    """What people said of the bug that ends all talk of it."""
    if bug.duplicate_of is not None:
        first = bugs.canonical(session, bug)
        where = f"#{first.issue}" if first.issue is not None else f"bug {first.id}"
        return f"a duplicate of {where}"
    return f"ruled {bug.ruling}" if bug.ruling else ""


def checked_first(drafts: Iterable[Draft], quiet: Collection[str], mode: str) -> list[Draft]:
    """The drafts, none about quiet bugs; an issue that nobody has to release waits for its checks."""
    loud = [one for one in drafts if one.kind != ISSUE or one.signature not in quiet]
    if mode != "auto":
        return loud
    return [
        replace(one, hold=CHECKING, cause=Cause.CHECKING) if one.kind == ISSUE and not one.hold else one
        for one in loud
    ]


def ask(
    session: Session,
    effect: str,
    target: str,
    bug: Bug | None,
    at: datetime,
    asked_by: str = "",
    number: int | None = None,
) -> None:
    """Asks for the checks of a held issue; anew where they are over, whatever came of them.

    Where in the compiler a reduced case goes wrong is asked before: jobs are done in the order they are asked
    for, so the issue can tell it.

    asked_by, number  who asked for it in a comment, and in which issue or pull request the answer goes
    """
    if bug is not None and bug.case_id:
        name = f"{LOCALISE}:{bug.id}:{bug.case_id[:16]}"
        jobs.ask(session, LOCALISE, target, name, at, bug_id=bug.id)
    name = key(FILING, effect)
    known = jobs.of_key(session, name)
    if number is None and known is not None and jobs.at_work(known):
        number = known.arguments.get("number")  # where somebody else waits for the answer
    jobs.ask(
        session,
        FILING,
        target,
        name,
        at,
        again=known is not None and (asked_by != "" or not jobs.at_work(known)),
        bug_id=bug.id if bug is not None else None,
        arguments={"effect": effect} | ({"number": number} if number is not None else {}),
        asked_by=asked_by,
    )


def ask_all(session: Session, posted: Iterable[outbox.Posted], drafts: Iterable[Draft], at: datetime) -> None:
    """Asks for the checks of those issues that wait for them."""
    signatures = {draft.key: draft for draft in drafts if draft.kind == ISSUE}
    for one in posted:
        waits = one.state is EffectState.HELD and one.cause is Cause.CHECKING
        if one.key in signatures and waits:
            draft = signatures[one.key]
            ask(session, one.key, draft.target, bugs.find(session, draft.target, draft.signature), at)
