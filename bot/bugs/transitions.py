"""State changes of bugs between campaigns: retests, their results, updates of issues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bot.bugs import first_bad_release, issue_updates
from bot.bugs.retest_result import RetestResult
from bot.store import Session, audit, bugs, campaigns, jobs, outbox, proposals, retests
from bot.store.bug_states import RESOLVED, Event
from bot.store.models import Bug, BugState, Campaign, ProposalState, Retest

RETEST = "retest"
PROPOSE = "propose"
#: Retests after one campaign; each costs three fresh processes.
MAX_RETESTS = 20
#: How often a bug is retested that is not reported. A retest takes as long as some twenty cases.
UNREPORTED_AGE = timedelta(days=1)


def request_retests(session: Session, campaign_id: int, at: datetime) -> int:
    """Requests retests of the bugs that a branch's campaign did not see, at its head; returns their number.

    Called in the transaction that ends the campaign. Pull requests do not count: they are not merged.
    """
    campaign = campaigns.get(session, campaign_id)
    if not campaigns.on_branch(campaign.pull, campaign.ref) or campaign.head_toolchain is None:
        return 0
    to_retest = retests.wanted(session, campaign, MAX_RETESTS, at - UNREPORTED_AGE)
    for bug in to_retest:
        request_retest(session, bug, campaign, f"{RETEST}:{bug.id}:{campaign.head[:40]}", "fix", at)
    return len(to_retest)


def request_retest(
    session: Session, bug: Bug, campaign: Campaign, key: str, purpose: str, at: datetime
) -> None:
    """Enqueues a retest of a bug at a campaign's head, once for each key."""
    jobs.enqueue(
        session,
        RETEST,
        bug.target,
        key,
        at,
        bug_id=bug.id,
        campaign_id=campaign.id,
        arguments={"purpose": purpose, "commit": campaign.head},
    )


def handle_sighting(session: Session, bug: Bug, before: BugState, campaign: Campaign, at: datetime) -> None:
    """Reports a recurrence if a campaign saw a bug whose issue is marked fixed."""
    if BugState(bug.state) in RESOLVED:
        return
    _report_recurrence(session, bug, before, f"a campaign saw it at {campaign.head[:12]}", campaign.head, at)
    first_bad_release.request_search_again(session, bug, campaign, campaign.head_toolchain, at)


def apply_retest(
    session: Session,
    row: Retest,
    result: RetestResult,
    summary: str,
    at: datetime,
    *,
    last_campaign: int | None,
) -> None:
    """Applies a retest to its bug.

    A retest on an unhealthy build decides nothing, nor does one on a build older than the present evidence:
    it may have waited while a later build was tested.

    last_campaign  the campaign that had last seen the bug when the retest began
    """
    bug = session.get_one(Bug, row.bug_id)
    before = BugState(bug.state)
    evidence = {"commit": row.commit, "toolchain": row.toolchain, "runs": row.runs, "failed": row.failed}
    if later := _find_newer_evidence(session, bug, row, last_campaign):
        audit.record(
            session,
            bug.target,
            "undecided",
            bugs.audit_subject(bug),
            f"{summary}; {later}",
            at,
            evidence=evidence,
        )
    elif result.passed:
        _handle_pass(session, bug, summary, at, evidence)
    elif not result.control_passed or not result.failed or bug.resolution:
        audit.record(
            session, bug.target, "undecided", bugs.audit_subject(bug), summary, at, evidence=evidence
        )
    elif bugs.apply_event(session, bug, Event.FAILED, summary, at, evidence=evidence):
        _report_recurrence(session, bug, before, summary, row.commit, at)
        first_bad_release.request_search_again(
            session, bug, campaigns.newest(session, bug.target, ""), row.toolchain, at
        )


def _find_newer_evidence(session: Session, bug: Bug, row: Retest, last_campaign: int | None) -> str:
    """Evidence from a later build that contradicts the retest; "" for none.

    The age of a commit that no campaign tested is unknown: sightings since the retest began count.
    """
    age = _newest_campaign_id(session, bug, row.commit)
    if age is None:
        return "a campaign saw it meanwhile" if not row.failed and bug.campaign_id != last_campaign else ""
    if not row.failed:
        return "a later campaign saw it since" if (bug.campaign_id or 0) > age else ""
    passes = (
        _newest_campaign_id(session, bug, one.commit)
        for one in retests.passed_since(session, bug.id, excluding=row.number)
    )
    return "it passed on a later commit" if any(one is not None and one > age for one in passes) else ""


def _newest_campaign_id(session: Session, bug: Bug, commit: str) -> int | None:
    """The id of the newest campaign of a commit; None if there was none."""
    found = campaigns.newest(session, bug.target, commit) if commit else None
    return found.id if found is not None else None


def _handle_pass(session: Session, bug: Bug, summary: str, at: datetime, evidence: Mapping[str, Any]) -> None:
    state = BugState(bug.state)
    if state not in RESOLVED:
        bugs.apply_event(session, bug, Event.PASSED, summary, at, evidence=evidence)
        outbox.withdraw(session, bug.id, f"it {summary}")
        _request_unmarking(session, bug, str(evidence["commit"]), at)
        return
    passing_retests = retests.passed_since(session, bug.id)
    if state is BugState.FIXED and len({row.commit for row in passing_retests}) >= 2:
        bugs.apply_event(session, bug, Event.PASSED_ELSEWHERE, summary, at, evidence=evidence)
        report_fix_verified(session, bug, passing_retests, at)


def _request_unmarking(session: Session, bug: Bug, commit: str, at: datetime) -> None:
    """Has the proposed test of a bug that passes lose its mark of an expected failure.

    A marked test that passes fails its suite. If it was merged, another pull request takes the mark away;
    else its own branch is written anew.
    """
    test = proposals.expected_to_fail(session, bug.target, bug.signature)
    if test is not None:
        key, rebase = f"unmark:{bug.id}:{commit[:40]}", test.state == ProposalState.OPEN.value
        jobs.enqueue(
            session, PROPOSE, bug.target, key, at, bug_id=bug.id, arguments={"rebase": True} if rebase else {}
        )


def report_fix_verified(session: Session, bug: Bug, passing_retests: list[Retest], at: datetime) -> None:
    """Posts the verified fix in the issue, and closes bug and issue if `reports.close` is set."""
    latest = campaigns.newest(session, bug.target, "")
    wanted = bool(((latest.config if latest else {}).get("reports") or {}).get("close", True))
    if bug.issue is not None:
        issue_updates.post(
            session, bug, issue_updates.draft_fix_verified(session, bug, passing_retests, close=wanted), at
        )
    if wanted:
        bugs.apply_event(session, bug, Event.CLOSED, "its fix was verified", at)


def _report_recurrence(
    session: Session, bug: Bug, before: BugState, why: str, commit: str, at: datetime
) -> None:
    """Posts a recurrence in an issue that a fix was posted in."""
    if before in (BugState.VERIFIED, BugState.CLOSED) and bug.issue is not None:
        issue_updates.post(
            session,
            bug,
            issue_updates.draft_recurrence(session, bug, why, commit, reopen=before is BugState.CLOSED),
            at,
        )
