"""Carries out the commands that came in: asks GitHub who may, then acts, one transaction for each comment.

What GitHub has to be asked (the author's role, the pull request as it is now) is asked before the
transaction; in it the rows are locked, the actions done, their answers put into the outbox, and all of it is
told in the audit. Killed before the commit, nothing has happened; killed behind it, everything has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bot.commands import replies
from bot.commands.command_context import CommandContext, CommandResult, CommandServices, ThreadKind, refuse
from bot.commands.grammar import InvalidCommand, ParsedCommand, parse
from bot.commands.registry import Action, RequiredRole, actions, verbs
from bot.loop import INFRASTRUCTURE_ERRORS, Loop
from bot.reports import text
from bot.store import Database, Session, audit, bugs, commands, now
from bot.store.models import Command, CommandState, Pull

#: Between two looks when nobody wakes us; commands of other processes are found so.
IDLE_S = 2.0
#: How long a comment waits after GitHub could not be asked, and how often that is tried.
RETRY_INTERVAL = timedelta(seconds=30)
RETRY_LIMIT = timedelta(hours=1)

_WRITE_ROLES = frozenset({"write", "maintain", "admin"})
_TRIAGE_ROLES = _WRITE_ROLES | {"triage"}


class PermissionReader(Protocol):
    """What has to be known of GitHub (`bot.github.reader.PermissionReader`)."""

    def permission(self, target: str, login: str) -> str:
        """The role of a person: none, read, triage, write, maintain, admin."""


#: Brings the row of a pull request up to date; None where GitHub has none of that number.
Refresh = Callable[[str, int, datetime], Pull | None]


@dataclass(frozen=True)
class _GitHubFacts:
    """What GitHub said before the transaction."""

    role: str
    pull: Pull | None


class Worker(Loop):
    """Carries out commands.

    refresh   reads a pull request anew and stores it; bot.pulls has it
    """

    def __init__(
        self,
        database: Database,
        reader: PermissionReader,
        refresh: Refresh,
        services: CommandServices,
        clock: Callable[[], datetime] = now,
    ) -> None:
        super().__init__("commands", IDLE_S)
        self._database, self._reader, self._refresh, self._services = database, reader, refresh, services
        self._clock = clock
        self._not_before: dict[int, datetime] = {}

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Carries out what waits and is due, one comment after another; False if there was nothing."""
        with self._database.reading() as session:
            pending_comments = commands.pending_comments(session)
        self._not_before = {one: until for one, until in self._not_before.items() if one in pending_comments}
        due = [one for one in pending_comments if self._not_before.get(one, self._clock()) <= self._clock()]
        for comment in due:
            if stop is not None and stop.is_set():
                break
            self._process_comment(comment)
        return bool(due)

    def _process_comment(self, comment: int) -> None:
        with self._database.reading() as session:
            rows = commands.of_comment(session, comment)
        if rows:
            self.process(_CommentTask(self, rows[0]))

    def execute(self, row: Command) -> None:
        """Carries out the comment that a command is in: asks what must be asked, then acts."""
        role = self._reader.permission(row.target, row.author)
        known = _GitHubFacts(role, self._refresh(row.target, row.number, self._clock()) if row.head else None)
        with self._database.transaction() as session:
            self._execute(session, row, known)

    def can_retry(self, row: Command) -> bool:
        """Whether a comment is not too old to be carried out later."""
        return row.created_at + RETRY_LIMIT > self._clock()

    def delay_comment(self, comment: int, seconds: float) -> None:
        """Leaves a comment alone for so long."""
        self._not_before[comment] = self._clock() + timedelta(seconds=seconds)

    def give_up(self, first: Command, reason: str) -> None:
        """Gives a comment up. Nobody is answered: what keeps us from asking keeps us from answering."""
        present = self._clock()
        with self._database.transaction() as session:
            for row in _lock_commands(session, first):
                commands.complete(row, CommandState.FAILED, reason, present)
                audit.record(
                    session, row.target, "failed", f"command:{row.comment}", reason, present, actor=row.author
                )

    def _execute(self, session: Session, first: Command, known: _GitHubFacts) -> None:
        rows = _lock_commands(session, first)
        if not rows:
            return
        present = self._clock()
        refused_before = commands.refused_before(session, rows[0])
        results = [self._execute_command(session, row, known, present) for row in rows]
        for row, result in zip(rows, results, strict=True):
            commands.complete(row, result.state, result.why, present)
            row.role = known.role
            _record_audit(session, row, result, present)
        replies.post(session, rows[0], _drop_repeated_refusals(results, known.role, refused_before), present)

    def _execute_command(
        self, session: Session, row: Command, known: _GitHubFacts, present: datetime
    ) -> CommandResult:
        (given,) = parse(row.text, verbs()) or [InvalidCommand(row.text, "is no command any more")]
        if isinstance(given, InvalidCommand):
            why = given.why if given.why.endswith("?") else f"{given.why}."
            return refuse(text.escaped(why) if known.role in _TRIAGE_ROLES else "")
        action = actions()[given.verb]
        context = self._build_context(session, row, given, known, present)
        if why := _find_permission_error(action, context):
            return refuse(why)
        if context.thread_kind not in action.thread_kinds:
            thread_kinds = " or ".join(sorted(thread_kind.value for thread_kind in action.thread_kinds))
            return refuse(f"`{action.verb.name}` is for {thread_kinds}.")
        return action.handler(session, context)

    def _build_context(
        self, session: Session, row: Command, given: ParsedCommand, known: _GitHubFacts, at: datetime
    ) -> CommandContext:
        pull = session.get(Pull, (row.target, row.number)) if row.head else None
        bug = bugs.of_issue(session, row.target, row.number) if pull is None else None
        thread_kind = ThreadKind.PULL if pull else ThreadKind.BUG if bug else ThreadKind.ISSUE
        return CommandContext(
            target=row.target,
            number=row.number,
            comment=row.comment,
            position=row.position,
            author=row.author,
            role=known.role,
            thread_kind=thread_kind,
            commented_at=row.created_at,
            at=at,
            services=self._services,
            values=given.values,
            bug=bug,
            pull=pull,
            head=row.head,
        )


@dataclass(frozen=True)
class _CommentTask:
    """A comment; `row` is its first command."""

    worker: Worker
    row: Command

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The comment."""
        return {"comment": self.row.comment}

    def work(self) -> None:
        """Carries it out."""
        self.worker.execute(self.row)

    def release_lease(self) -> None:
        """Nothing was written."""

    def wait(self) -> float | None:
        """By its age: nobody reads an answer a day later."""
        return RETRY_INTERVAL.total_seconds() if self.worker.can_retry(self.row) else None

    def postpone(self, error: Exception, seconds: float) -> None:
        """Keeps in mind when."""
        del error  # it is in the log
        self.worker.delay_comment(self.row.comment, seconds)

    def fail(self, error: Exception) -> None:
        """Gives it up."""
        why = "GitHub could not be asked: " if isinstance(error, INFRASTRUCTURE_ERRORS) else ""
        self.worker.give_up(self.row, f"{why}{error}")

    def record_internal_error(self, bug: Exception) -> None:
        """Gives it up; the others are carried out."""
        reason = f"a bug of Assay: {type(bug).__name__}; its log has the traceback"
        self.worker.give_up(self.row, reason)


def _lock_commands(session: Session, first: Command) -> Sequence[Command]:
    """The comment's commands; none where another process was first.

    Nor where the repository was renamed while GitHub was asked, which may know nobody under its old name: it
    is asked again.
    """
    rows = commands.of_comment(session, first.comment)
    return rows if rows and rows[0].target == first.target else ()


def _find_permission_error(action: Action, context: CommandContext) -> str:
    """Why this person may not say this; "" if they may."""
    if context.role in _WRITE_ROLES:
        return ""
    is_participant = context.role in _TRIAGE_ROLES or (
        context.pull is not None and context.pull.author == context.author
    )
    if action.required_role is RequiredRole.READER and is_participant:
        return ""
    return (
        f"`{action.verb.name}` needs write access to {context.target}, which you do not have; "
        "a maintainer can say it."
    )


def _drop_repeated_refusals(
    results: Sequence[CommandResult], role: str, before: Collection[str]
) -> list[CommandResult]:
    """The receipts, silent where a second answer would be noise.

    Maintainers are told each reason once in a thread; others one reason, whatever they try next.

    before  why the same person was refused here before
    """
    return [
        CommandResult("", state=each.state, why=each.why)
        if each.state is CommandState.REFUSED and (each.why in before if role in _WRITE_ROLES else before)
        else each
        for each in results
    ]


def _record_audit(session: Session, row: Command, result: CommandResult, at: datetime) -> None:
    subject = result.subject or f"command:{row.comment}"
    why = result.why or f"asked for: {row.text}"
    audit.record(
        session,
        row.target,
        result.state.value,
        subject,
        why,
        at,
        actor=row.author,
        evidence={"command": row.text, "comment": row.comment, "number": row.number, "role": row.role},
    )
