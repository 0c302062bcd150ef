"""What a bug's own issue is told of its life: comments, and that it is closed or open again.

Nothing of this waits for a maintainer: an issue that is out was released once, and this is its due.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.github.limits import marker
from bot.reports import text
from bot.reports.issue import tidy
from bot.reports.report import key
from bot.reports.templating import render
from bot.store import Session, campaigns, outbox, targets
from bot.store.models import Bug, Retest
from bot.store.outbox import Draft

COMMENT, ISSUE_STATE = "comment", "issue_state"
#: Ours: what a comment needs at most; the evidence page has the rest.
MAX_COMMENT = 10_000


def back(session: Session, bug: Bug, why: str, commit: str, *, reopen: bool) -> list[Draft]:
    """It fails again: one comment for each commit that shows it; its issue is opened where we closed it."""
    body = render("bugs/back.md.j2", why=why, commit=commit, title=bug.title)
    said = _comment(session, bug, "back", commit, body)
    return [said, _state(session, bug, "open", "reopened", said)] if reopen else [said]


def mended(session: Session, bug: Bug, proofs: Sequence[Retest], *, close: bool) -> list[Draft]:
    """Its fix was verified: the evidence, and the issue closed where that is wanted."""
    shown = [(row, campaigns.toolchain(session, row.toolchain).label) for row in proofs]
    body = render("bugs/mended.md.j2", proofs=shown, fixed_by=bug.fixed_by, close=close)
    said = _comment(session, bug, "mended", proofs[-1].commit, body)
    return [said, _state(session, bug, "closed", "completed", said)] if close else [said]


def silent(session: Session, bug: Bug, why: str) -> list[Draft]:
    """Nothing shows it any more: said once, and closed as what nobody will work on."""
    body = render("bugs/silent.md.j2", why=why)
    said = _comment(session, bug, "silent", str(bug.seen), body)
    return [said, _state(session, bug, "closed", "not_planned", said)]


def post(session: Session, bug: Bug, drafts: list[Draft], at: datetime) -> None:
    """Says it as the newest configuration of the target wants it, which may be in dry-run again."""
    latest = campaigns.newest(session, bug.target, "")
    campaign = latest.id if latest is not None else bug.campaign_id
    outbox.post(session, drafts, campaign_id=campaign, issues_per_day=0, at=at)


def state_key(session: Session, bug: Bug) -> str:
    """The effect that opens and closes the bug's issue."""
    return key(ISSUE_STATE, targets.known_as(session, bug.target), "bug", str(bug.id))


def state_of(state: str, reason: str) -> dict[str, str]:
    """What that effect says, as GitHub takes it."""
    return {"state": state, "state_reason": reason}


def _comment(session: Session, bug: Bug, what: str, which: str, body: str) -> Draft:
    name = key(COMMENT, targets.known_as(session, bug.target), "bug", str(bug.id), what, which)
    payload = {"body": f"{text.cut(tidy(body), MAX_COMMENT)}\n\n{marker(name)}\n"}
    return Draft(COMMENT, name, bug.target, payload, number=bug.issue, bug_id=bug.id)


def _state(session: Session, bug: Bug, state: str, reason: str, said: Draft) -> Draft:
    """Closes or opens it, once what was said of that is there: nobody should wonder why."""
    payload = state_of(state, reason)
    return Draft(
        ISSUE_STATE,
        state_key(session, bug),
        bug.target,
        payload,
        number=bug.issue,
        after=said.key,
        bug_id=bug.id,
        living=True,
    )
