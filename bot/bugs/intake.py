"""What people do to our issues: closing, opening again, deleting. In the transaction of the delivery."""

from __future__ import annotations

import structlog

from bot.bugs import telling
from bot.store import Session, audit, bugs, now, outbox
from bot.store.life import Event
from bot.store.models import Bug
from bot.webhooks.intents import IssueIntent

log = structlog.get_logger(__name__)

#: GitHub's reason of an issue that was closed as something nobody will work on, and as one that is another.
_NOT_PLANNED = frozenset({"not_planned", "duplicate"})
#: What one person does and another undoes.
_UNDONE = frozenset({"closed", "reopened"})


def handle(session: Session, intent: IssueIntent) -> bool:
    """Lets it happen to the bug the issue is about; whether it is one of ours. Our own doing is known.

    What comes later than what was done after it changes nothing; what takes the issue away does.
    """
    bug = bugs.of_issue(session, intent.target, intent.number)
    if bug is None or intent.bot:
        return False
    if intent.action in _UNDONE:
        if bug.told_at is not None and intent.updated_at < bug.told_at:
            log.info("issue_stale", bug=bug.id, action=intent.action)
            return True
        bug.told_at = intent.updated_at
    log.info("issue", bug=bug.id, action=intent.action, sender=intent.sender)
    if intent.action == "closed":
        _closed(session, bug, intent)
    elif intent.action == "reopened":
        _reopened(session, bug, intent)
    elif intent.action in ("deleted", "transferred"):
        _gone(session, bug, intent)
    return True


def _closed(session: Session, bug: Bug, intent: IssueIntent) -> None:
    """As not planned it is over and nothing more is said; as completed it comes back if it fails again."""
    if intent.state_reason in _NOT_PLANNED:
        why = f"{intent.sender} closed #{intent.number} as {intent.state_reason.replace('_', ' ')}"
        bugs.rule(session, bug, "invalid", why)
    else:
        why = f"{intent.sender} closed #{intent.number}"
    _stands(session, bug, "closed", intent.state_reason or "completed")
    _move(session, bug, Event.CLOSED, why, intent)


def _reopened(session: Session, bug: Bug, intent: IssueIntent) -> None:
    why = f"{intent.sender} opened #{intent.number} again"
    if bug.ruling:
        bugs.rule(session, bug, "", why)
    _stands(session, bug, "open", "reopened")
    _move(session, bug, Event.REOPENED, why, intent)


def _gone(session: Session, bug: Bug, intent: IssueIntent) -> None:
    """An issue that was taken away is not filed again: whoever did that does not want it here."""
    why = f"{intent.sender} {intent.action} #{intent.number}"
    bugs.rule(session, bug, "invalid", why)
    bug.issue = None
    _move(session, bug, Event.CLOSED, why, intent)


def _stands(session: Session, bug: Bug, state: str, reason: str) -> None:
    """The issue is as a person made it, whatever we made it before."""
    outbox.overtaken(session, telling.state_key(session, bug), telling.state_of(state, reason))


def _move(session: Session, bug: Bug, event: Event, why: str, intent: IssueIntent) -> None:
    """Lets it happen; a person's doing is in the audit also where the bug's state stays."""
    at = now()
    if not bugs.move(session, bug, event, why, at, who=intent.sender):
        audit.record(session, bug.target, event.value, bugs.subject(bug), why, at, who=intent.sender)
