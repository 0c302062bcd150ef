"""What people do to our issues: closing, opening again, deleting. In the transaction of the delivery."""

from __future__ import annotations

import structlog

from bot.bugs import issue_updates
from bot.store import Session, audit, bugs, now, outbox
from bot.store.bug_states import Event
from bot.store.models import Bug
from bot.webhooks.intents import IssueIntent

log = structlog.get_logger(__name__)

#: GitHub's reason of an issue that was closed as something nobody will work on, and as one that is another.
_NOT_PLANNED = frozenset({"not_planned", "duplicate"})
#: What one person does and another undoes.
_REVERSIBLE = frozenset({"closed", "reopened"})


def handle(session: Session, intent: IssueIntent) -> bool:
    """Lets it happen to the bug the issue is about; whether it is one of ours. Our own doing is known.

    What comes later than what was done after it changes nothing; what takes the issue away does.
    """
    bug = bugs.of_issue(session, intent.target, intent.number)
    if bug is None or intent.bot:
        return False
    if intent.action in _REVERSIBLE:
        if bug.issue_updated_at is not None and intent.updated_at < bug.issue_updated_at:
            log.info("issue_event.ignored", bug=bug.id, action=intent.action)
            return True
        bug.issue_updated_at = intent.updated_at
    log.info("issue_event.applied", bug=bug.id, action=intent.action, sender=intent.sender)
    if intent.action == "closed":
        _closed(session, bug, intent)
    elif intent.action == "reopened":
        _reopened(session, bug, intent)
    elif intent.action in ("deleted", "transferred"):
        _removed(session, bug, intent)
    return True


def _closed(session: Session, bug: Bug, intent: IssueIntent) -> None:
    """As not planned it is over and nothing more is said; as completed it comes back if it fails again."""
    if intent.state_reason in _NOT_PLANNED:
        why = f"{intent.sender} closed #{intent.number} as {intent.state_reason.replace('_', ' ')}"
        bugs.set_resolution(session, bug, "invalid", why)
    else:
        why = f"{intent.sender} closed #{intent.number}"
    _override_pending_state(session, bug, "closed", intent.state_reason or "completed")
    _transition(session, bug, Event.CLOSED, why, intent)


def _reopened(session: Session, bug: Bug, intent: IssueIntent) -> None:
    why = f"{intent.sender} opened #{intent.number} again"
    if bug.resolution:
        bugs.set_resolution(session, bug, "", why)
    _override_pending_state(session, bug, "open", "reopened")
    _transition(session, bug, Event.REOPENED, why, intent)


def _removed(session: Session, bug: Bug, intent: IssueIntent) -> None:
    """An issue that was taken away is not filed again: whoever did that does not want it here."""
    why = f"{intent.sender} {intent.action} #{intent.number}"
    bugs.set_resolution(session, bug, "invalid", why)
    bug.issue = None
    _transition(session, bug, Event.CLOSED, why, intent)


def _override_pending_state(session: Session, bug: Bug, state: str, reason: str) -> None:
    """The issue is as a person made it, whatever we made it before."""
    outbox.set_remote_content(
        session, issue_updates.issue_state_key(session, bug), issue_updates.build_state_payload(state, reason)
    )


def _transition(session: Session, bug: Bug, event: Event, why: str, intent: IssueIntent) -> None:
    """Lets it happen; a person's doing is in the audit also where the bug's state stays."""
    at = now()
    if not bugs.apply_event(session, bug, event, why, at, actor=intent.sender):
        audit.record(session, bug.target, event.value, bugs.audit_subject(bug), why, at, actor=intent.sender)
