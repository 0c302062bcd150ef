"""What happens to bugs between campaigns: who is asked again, what came of it, what their issues are told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.bugs import since, telling
from bot.bugs.verdicts import Tally
from bot.store import Session, audit, bugs, campaigns, jobs, outbox, retests
from bot.store.life import OVER, Event
from bot.store.models import Bug, BugState, Campaign, Retest

RETEST = "retest"
#: Ours: bugs that one campaign's head is asked about. Each costs three fresh processes.
MAX_RETESTS = 20


def after_campaign(session: Session, campaign_id: int, at: datetime) -> int:
    """Has the head of a branch's campaign asked about the bugs it did not see; how many that are.

    In the transaction that ends the campaign. A pull request's head says nothing: it is not merged.
    """
    campaign = campaigns.get(session, campaign_id)
    if not campaigns.on_branch(campaign.pull, campaign.ref) or campaign.head_toolchain is None:
        return 0
    asked = retests.wanted(session, campaign, MAX_RETESTS)
    for bug in asked:
        ask_retest(session, bug, campaign, f"{RETEST}:{bug.id}:{campaign.head[:40]}", "fix", at)
    return len(asked)


def ask_retest(session: Session, bug: Bug, campaign: Campaign, key: str, purpose: str, at: datetime) -> None:
    """Has a bug's case run on a campaign's head, once for each key."""
    jobs.ask(
        session,
        RETEST,
        bug.target,
        key,
        at,
        bug_id=bug.id,
        campaign_id=campaign.id,
        arguments={"purpose": purpose, "commit": campaign.head},
    )


def seen(session: Session, bug: Bug, before: BugState, campaign: Campaign, at: datetime) -> None:
    """A campaign saw the bug; if its issue says that it was mended, that is told and opened again."""
    if BugState(bug.state) in OVER:
        return
    _back(session, bug, before, f"a campaign saw it at {campaign.head[:12]}", campaign.head, at)
    since.anew(session, bug, campaign, campaign.head_toolchain, at)


def after_retest(
    session: Session, row: Retest, seen: Tally, said: str, at: datetime, *, last: int | None
) -> None:
    """Lets a retest happen to its bug.

    A build that is not healthy says nothing about it, nor does one that is older than what is known by now:
    it may have waited, or worked, while a later one was tested.

    last   the campaign that had seen the bug last when the retest began
    """
    bug = session.get_one(Bug, row.bug_id)
    before = BugState(bug.state)
    evidence = {"commit": row.commit, "toolchain": row.toolchain, "runs": row.runs, "failed": row.failed}
    if later := _known_later(session, bug, row, last):
        audit.record(
            session, bug.target, "undecided", bugs.subject(bug), f"{said}; {later}", at, evidence=evidence
        )
    elif seen.passed:
        _passed(session, bug, said, at, evidence)
    elif not seen.healthy or not seen.failed or bug.ruling:
        audit.record(session, bug.target, "undecided", bugs.subject(bug), said, at, evidence=evidence)
    elif bugs.move(session, bug, Event.FAILED, said, at, evidence=evidence):
        _back(session, bug, before, said, row.commit, at)
        since.anew(session, bug, campaigns.newest(session, bug.target, ""), row.toolchain, at)


def _known_later(session: Session, bug: Bug, row: Retest, last: int | None) -> str:
    """What is known of a later build than the retest's that says otherwise; "" for nothing.

    Of a commit that no campaign tested nobody can tell how old it is: what was seen meanwhile counts.
    """
    age = _age(session, bug, row.commit)
    if age is None:
        return "a campaign saw it meanwhile" if not row.failed and bug.campaign_id != last else ""
    if not row.failed:
        return "a later campaign saw it since" if (bug.campaign_id or 0) > age else ""
    passes = (_age(session, bug, one.commit) for one in retests.passed_since(session, bug.id, but=row.number))
    return "it passed on a later commit" if any(one is not None and one > age for one in passes) else ""


def _age(session: Session, bug: Bug, commit: str) -> int | None:
    """Of a commit: the newest campaign of it, as campaigns are counted; None where there was none."""
    found = campaigns.newest(session, bug.target, commit) if commit else None
    return found.id if found is not None else None


def _passed(session: Session, bug: Bug, said: str, at: datetime, evidence: Mapping[str, Any]) -> None:
    state = BugState(bug.state)
    if state not in OVER:
        bugs.move(session, bug, Event.PASSED, said, at, evidence=evidence)
        outbox.withdraw(session, bug.id, f"it {said}")
        return
    proofs = retests.passed_since(session, bug.id)
    if state is BugState.FIXED and len({row.commit for row in proofs}) >= 2:
        bugs.move(session, bug, Event.PASSED_ELSEWHERE, said, at, evidence=evidence)
        close(session, bug, proofs, at)


def close(session: Session, bug: Bug, proofs: list[Retest], at: datetime) -> None:
    """Tells the bug's issue that it is mended, and closes both where the repository wants that."""
    latest = campaigns.newest(session, bug.target, "")
    wanted = bool(((latest.config if latest else {}).get("reports") or {}).get("close", True))
    if bug.issue is not None:
        telling.post(session, bug, telling.mended(session, bug, proofs, close=wanted), at)
    if wanted:
        bugs.move(session, bug, Event.CLOSED, "its fix was verified", at)


def _back(session: Session, bug: Bug, before: BugState, why: str, commit: str, at: datetime) -> None:
    """Tells its issue, where that has heard of a fix; one that nobody heard of is nothing to take back."""
    if before in (BugState.VERIFIED, BugState.CLOSED) and bug.issue is not None:
        telling.post(
            session, bug, telling.back(session, bug, why, commit, reopen=before is BugState.CLOSED), at
        )
