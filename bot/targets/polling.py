"""Polls comments and our issues if no webhook reports them."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.bugs import issue_updates
from bot.errors import RefusalError
from bot.github.resources import CommentInfo, IssueInfo
from bot.store import Session, outbox, targets
from bot.store import bugs as rows
from bot.store.models import Bug, BugState, Target, TargetState
from bot.targets.periodic_tasks import TaskContext, contain_faults
from bot.webhooks.events.issue_comment import is_own_comment
from bot.webhooks.intents import CommentIntent, Intent, IssueIntent

COMMENTS, ISSUES = "issue_comment", "issues"
EVENTS = frozenset({COMMENTS, ISSUES})
#: Read again each time, because clocks differ; a comment is stored once however often it is read.
OVERLAP = timedelta(minutes=5)
#: The longest time to look back.
MAX_LOOKBACK = timedelta(days=1)


def list_events_to_poll(session: Session, target: Target) -> frozenset[str]:
    """The events to poll: all without an installation, else those that its webhooks do not include."""
    if target.installation_id is None:
        return EVENTS
    row = targets.installation(session, target.installation_id)
    if row is None or not row.events:  # not read yet
        return frozenset()
    return EVENTS - frozenset(row.events)


def poll(context: TaskContext, name: str, last: datetime, events: frozenset[str]) -> None:
    """Reads what happened since `last`. Raises as the reader does."""
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
        bugs = targets.reported_bugs(session, name) if ISSUES in events else ()
    if target is None or target.state != TargetState.WATCHED.value:
        return
    since = max(context.at - MAX_LOOKBACK, last - OVERLAP)
    if COMMENTS in events:
        for comment in context.dependencies.github_api.comments_since(target.name, since):
            if not is_own_comment(comment.body):
                with contain_faults(f"{target.name} comment {comment.id}"):
                    _handle_intent(context, _comment_intent(target, comment, since))
    for bug in bugs:
        context.heartbeat()
        read_at = context.dependencies.clock()
        issue = _read_issue(context, target, bug)
        if issue is not None and issue.updated_at >= since:
            with contain_faults(f"{target.name} issue {issue.number}"):
                _handle_issue(context, target, bug, issue, read_at)


def _handle_intent(context: TaskContext, intent: Intent) -> None:
    with context.dependencies.database.transaction() as session:
        context.dependencies.handle_intent(session, intent)


def _handle_issue(
    context: TaskContext, target: Target, bug: Bug, issue: IssueInfo, read_at: datetime
) -> None:
    """Carries out what people did to a bug's issue.

    Ignores the answer if the bug changed after GitHub was read, or if we are changing the issue ourselves.
    """
    with context.dependencies.database.transaction() as session:
        row = rows.of_id(session, bug.id)
        if row is None or (row.state, row.issue, row.issue_updated_at) != (
            bug.state,
            bug.issue,
            bug.issue_updated_at,
        ):
            return
        action = _find_action(row, issue)
        if action and not outbox.is_in_flight(session, issue_updates.issue_state_key(session, row), read_at):
            context.dependencies.handle_intent(session, _issue_intent(target, issue, action))


def _read_issue(context: TaskContext, target: Target, bug: Bug) -> IssueInfo | None:
    assert bug.issue is not None
    try:
        return context.dependencies.github_api.issue(target.name, bug.issue)
    except RefusalError:
        return None  # deleted or hidden; the next effect for it is refused


def _find_action(bug: Bug, issue: IssueInfo) -> str:
    """The missed action of a bug's issue, as a webhook names it; "" for none."""
    closed = bug.state == BugState.CLOSED.value
    if issue.state == "closed":
        return "" if closed else "closed"
    return "reopened" if closed else ""


def _comment_intent(target: Target, facts: CommentInfo, since: datetime) -> CommentIntent:
    """The comment, as edited if it was written before `since`.

    Only people with write access edit other people's comments, so its author never has more rights than its
    editor.
    """
    edited = facts.created_at < since
    return CommentIntent(
        target=target.name,
        github_id=target.github_id,
        comment=facts.id,
        number=facts.number,
        on_pull=facts.on_pull,
        author=facts.author,
        bot=facts.bot,
        association=facts.association,
        body=facts.body,
        edited=edited,
        written_at=facts.updated_at if edited else facts.created_at,
    )


def _issue_intent(target: Target, facts: IssueInfo, action: str) -> IssueIntent:
    """The intent, without a sender: GitHub does not give one here."""
    return IssueIntent(
        target=target.name,
        github_id=target.github_id,
        number=facts.number,
        action=action,
        sender="",
        bot=False,
        state=facts.state,
        state_reason=facts.state_reason,
        updated_at=facts.updated_at,
    )
