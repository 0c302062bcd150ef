"""Comments and state changes of a bug's own issue. A filed issue needs no further approval for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.github.limits import marker
from bot.reports import text
from bot.reports.issue import collapse_blank_lines
from bot.reports.report import idempotency_key
from bot.reports.templates import render
from bot.store import Session, campaigns, outbox, targets
from bot.store.models import Bug, Retest
from bot.store.outbox import EffectDraft

COMMENT, ISSUE_STATE = "comment", "issue_state"
#: Characters of a comment; the bug's page has the rest.
MAX_COMMENT = 10_000


def draft_recurrence(session: Session, bug: Bug, why: str, commit: str, *, reopen: bool) -> list[EffectDraft]:
    """The comment for a recurrence, one for each commit; `reopen` also reopens the issue."""
    body = render("bugs/reopened.md.j2", why=why, commit=commit, title=bug.title)
    comment = _draft_comment(session, bug, "back", commit, body)
    return [comment, _draft_state(session, bug, "open", "reopened", comment)] if reopen else [comment]


def draft_fix_verified(
    session: Session, bug: Bug, passing_retests: Sequence[Retest], *, close: bool
) -> list[EffectDraft]:
    """The comment with the evidence of a verified fix; `close` also closes the issue."""
    shown = [(row, campaigns.toolchain(session, row.toolchain).label) for row in passing_retests]
    body = render("bugs/fixed.md.j2", passing_retests=shown, fixed_by=bug.fixed_by, close=close)
    comment = _draft_comment(session, bug, "mended", passing_retests[-1].commit, body)
    return [comment, _draft_state(session, bug, "closed", "completed", comment)] if close else [comment]


def draft_obsolete(session: Session, bug: Bug, why: str) -> list[EffectDraft]:
    """The comment for a stale bug, and the closing of its issue as not planned."""
    body = render("bugs/stale.md.j2", why=why)
    comment = _draft_comment(session, bug, "silent", str(bug.seen), body)
    return [comment, _draft_state(session, bug, "closed", "not_planned", comment)]


def post(session: Session, bug: Bug, drafts: list[EffectDraft], at: datetime) -> None:
    """Posts the drafts in the mode of the target's newest configuration."""
    latest = campaigns.newest(session, bug.target, "")
    campaign = latest.id if latest is not None else bug.campaign_id
    outbox.post(session, drafts, campaign_id=campaign, issues_per_day=0, at=at)


def issue_state_key(session: Session, bug: Bug) -> str:
    """The key of the effect that opens and closes the bug's issue."""
    return idempotency_key(ISSUE_STATE, targets.stable_name(session, bug.target), "bug", str(bug.id))


def build_state_payload(state: str, reason: str) -> dict[str, str]:
    """The payload of that effect."""
    return {"state": state, "state_reason": reason}


def _draft_comment(session: Session, bug: Bug, what: str, which: str, body: str) -> EffectDraft:
    name = idempotency_key(COMMENT, targets.stable_name(session, bug.target), "bug", str(bug.id), what, which)
    payload = {"body": f"{text.cut(collapse_blank_lines(body), MAX_COMMENT)}\n\n{marker(name)}\n"}
    return EffectDraft(COMMENT, name, bug.target, payload, number=bug.issue, bug_id=bug.id)


def _draft_state(session: Session, bug: Bug, state: str, reason: str, comment: EffectDraft) -> EffectDraft:
    """Changes the state after the comment that explains it."""
    payload = build_state_payload(state, reason)
    return EffectDraft(
        ISSUE_STATE,
        issue_state_key(session, bug),
        bug.target,
        payload,
        number=bug.issue,
        depends_on=comment.key,
        bug_id=bug.id,
        editable=True,
    )
