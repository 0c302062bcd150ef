"""Applies people's changes of our issues to bugs, in the transaction of the delivery."""

from __future__ import annotations

import structlog

from bot.bugs import issue_updates
from bot.store import Session, audit, bugs, now, outbox
from bot.store.bug_states import Event
from bot.store.models import Bug
from bot.webhooks.intents import IssueIntent

log = structlog.get_logger(__name__)

#: GitHub's reasons for closing that resolve the bug as invalid.
_NOT_PLANNED = frozenset({"not_planned", "duplicate"})
#: Actions that reverse each other: only the latest counts.
_REVERSIBLE = frozenset({"closed", "reopened"})


def handle(session: Session, intent: IssueIntent) -> bool:
    """Applies an event to the bug of the issue; returns whether the issue is ours.

    Events caused by programs are ignored. An event older than the last applied one changes nothing, unless it
    removes the issue.
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
    """Closing as not planned resolves the bug as invalid; closed as completed, a failure reopens it."""
    if intent.state_reason in _NOT_PLANNED:
        why = f"{intent.sender} closed #{intent.number} as {intent.state_reason.replace('_', ' ')}"
        bugs.set_resolution(session, bug, "invalid", why)
    else:
        why = f"{intent.sender} closed #{intent.number}"
    _override_pending_state(session, bug, "closed", intent.state_reason or "completed")
    _transition(session, bug, Event.CLOSED, why, intent)


def _reopened(session: Session, bug: Bug, intent: IssueIntent) -> None:
    why = f"{intent.sender} reopened #{intent.number}"
    if bug.resolution:
        bugs.set_resolution(session, bug, "", why)
    _override_pending_state(session, bug, "open", "reopened")
    _transition(session, bug, Event.REOPENED, why, intent)


def _removed(session: Session, bug: Bug, intent: IssueIntent) -> None:
    """A deleted or transferred issue is not filed again."""
    why = f"{intent.sender} {intent.action} #{intent.number}"
    bugs.set_resolution(session, bug, "invalid", why)
    bug.issue = None
    _transition(session, bug, Event.CLOSED, why, intent)


def _override_pending_state(session: Session, bug: Bug, state: str, reason: str) -> None:
    outbox.set_remote_content(
        session, issue_updates.issue_state_key(session, bug), issue_updates.build_state_payload(state, reason)
    )


def _transition(session: Session, bug: Bug, event: Event, why: str, intent: IssueIntent) -> None:
    """Applies the event; records it in the audit also if the bug's state stays."""
    at = now()
    if not bugs.apply_event(session, bug, event, why, at, actor=intent.sender):
        audit.record(session, bug.target, event.value, bugs.audit_subject(bug), why, at, actor=intent.sender)
