"""What people wrote where no webhook tells of it: comments, and what became of our issues."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.bugs import telling
from bot.errors import RefusalError
from bot.github.facts import CommentFacts, IssueFacts
from bot.store import Session, outbox, targets
from bot.store import bugs as rows
from bot.store.models import Bug, BugState, Target, TargetState
from bot.targets.duties import Work
from bot.webhooks.events.issue_comment import is_ours
from bot.webhooks.intents import CommentIntent, Intent, IssueIntent

COMMENTS, ISSUES = "issue_comment", "issues"
EVENTS = frozenset({COMMENTS, ISSUES})
#: Asked for once more each time: clocks differ, and a comment is a row of its own however often it is told.
OVERLAP = timedelta(minutes=5)
#: How far back at most: what is older was read, or nobody waits for it any more.
FAR_BACK = timedelta(days=1)


def unheard(session: Session, target: Target) -> frozenset[str]:
    """The events below of which no webhook tells: all without an App, else those it did not ask for."""
    if target.installation_id is None:
        return EVENTS
    row = targets.installation(session, target.installation_id)
    if row is None or not row.events:  # they have not been read yet
        return frozenset()
    return EVENTS - frozenset(row.events)


def poll(work: Work, name: str, last: datetime, events: frozenset[str]) -> None:
    """Asks for what happened since the `last` look. Raises what reading GitHub raises."""
    with work.world.database.reading() as session:
        target = targets.find(session, name)
        bugs = targets.reported_bugs(session, name) if ISSUES in events else ()
    if target is None or target.state != TargetState.WATCHED.value:
        return
    since = max(work.at - FAR_BACK, last - OVERLAP)
    if COMMENTS in events:
        for comment in work.world.hub.comments_since(target.name, since):
            if comment.created_at >= since and not is_ours(comment.body):
                _carry_out(work, _comment(target, comment))
    for bug in bugs:
        work.look()
        asked = work.world.clock()
        issue = _issue(work, target, bug)
        if issue is not None and issue.updated_at >= since:
            _look_at(work, target, bug, issue, asked)


def _carry_out(work: Work, intent: Intent) -> None:
    with work.world.database.transaction() as session:
        work.world.carry_out(session, intent)


def _look_at(work: Work, target: Target, bug: Bug, issue: IssueFacts, asked: datetime) -> None:
    """Carries out what people did to a bug's issue.

    Where something has happened to the bug since GitHub was asked, or we are about to open or close its issue
    ourselves, the answer tells nothing of people: the next one will.
    """
    with work.world.database.transaction() as session:
        row = rows.of_id(session, bug.id)
        if row is None or (row.state, row.issue, row.told_at) != (bug.state, bug.issue, bug.told_at):
            return
        action = _happened(row, issue)
        if action and not outbox.under_way(session, telling.state_key(session, row), asked):
            work.world.carry_out(session, _changed(target, issue, action))


def _issue(work: Work, target: Target, bug: Bug) -> IssueFacts | None:
    assert bug.issue is not None
    try:
        return work.world.hub.issue(target.name, bug.issue)
    except RefusalError:
        return None  # deleted or hidden; whoever next has something to say there is told so


def _happened(bug: Bug, issue: IssueFacts) -> str:
    """What happened to a bug's issue without our hearing of it, as the webhook's action; "" for nothing."""
    closed = bug.state == BugState.CLOSED.value
    if issue.state == "closed":
        return "" if closed else "closed"
    return "reopened" if closed else ""


def _comment(target: Target, facts: CommentFacts) -> CommentIntent:
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
    )


def _changed(target: Target, facts: IssueFacts, action: str) -> IssueIntent:
    """Who did it, GitHub does not tell here."""
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
