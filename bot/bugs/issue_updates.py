"""What a bug's own issue is told of its life: comments, and that it is closed or open again.

Nothing of this waits for a maintainer: an issue that is out was released once, and this is its due.
"""

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
#: Ours: what a comment needs at most; the evidence page has the rest.
MAX_COMMENT = 10_000


def draft_recurrence(session: Session, bug: Bug, why: str, commit: str, *, reopen: bool) -> list[EffectDraft]:
    """It fails again: one comment for each commit that shows it; its issue is opened where we closed it."""
    body = render("bugs/reopened.md.j2", why=why, commit=commit, title=bug.title)
    comment = _draft_comment(session, bug, "back", commit, body)
    return [comment, _draft_state(session, bug, "open", "reopened", comment)] if reopen else [comment]


def draft_fix_verified(
    session: Session, bug: Bug, passing_retests: Sequence[Retest], *, close: bool
) -> list[EffectDraft]:
    """Its fix was verified: the evidence, and the issue closed where that is wanted."""
    shown = [(row, campaigns.toolchain(session, row.toolchain).label) for row in passing_retests]
    body = render("bugs/fixed.md.j2", passing_retests=shown, fixed_by=bug.fixed_by, close=close)
    comment = _draft_comment(session, bug, "mended", passing_retests[-1].commit, body)
    return [comment, _draft_state(session, bug, "closed", "completed", comment)] if close else [comment]


def draft_obsolete(session: Session, bug: Bug, why: str) -> list[EffectDraft]:
    """Nothing shows it any more: said once, and closed as what nobody will work on."""
    body = render("bugs/stale.md.j2", why=why)
    comment = _draft_comment(session, bug, "silent", str(bug.seen), body)
    return [comment, _draft_state(session, bug, "closed", "not_planned", comment)]


def post(session: Session, bug: Bug, drafts: list[EffectDraft], at: datetime) -> None:
    """Says it as the newest configuration of the target wants it, which may be in dry-run again."""
    latest = campaigns.newest(session, bug.target, "")
    campaign = latest.id if latest is not None else bug.campaign_id
    outbox.post(session, drafts, campaign_id=campaign, issues_per_day=0, at=at)


def issue_state_key(session: Session, bug: Bug) -> str:
    """The effect that opens and closes the bug's issue."""
    return idempotency_key(ISSUE_STATE, targets.stable_name(session, bug.target), "bug", str(bug.id))


def build_state_payload(state: str, reason: str) -> dict[str, str]:
    """What that effect says, as GitHub takes it."""
    return {"state": state, "state_reason": reason}


def _draft_comment(session: Session, bug: Bug, what: str, which: str, body: str) -> EffectDraft:
    name = idempotency_key(COMMENT, targets.stable_name(session, bug.target), "bug", str(bug.id), what, which)
    payload = {"body": f"{text.cut(collapse_blank_lines(body), MAX_COMMENT)}\n\n{marker(name)}\n"}
    return EffectDraft(COMMENT, name, bug.target, payload, number=bug.issue, bug_id=bug.id)


def _draft_state(session: Session, bug: Bug, state: str, reason: str, comment: EffectDraft) -> EffectDraft:
    """Closes or opens it, once what was said of that is there: nobody should wonder why."""
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
