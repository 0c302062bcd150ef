"""Carries out stored commands, one transaction for each comment.

The author's role and the pull request's present state are read from GitHub before the transaction. In it the
rows are locked, the actions run, and the replies and audit events are written. A kill before the commit
leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from bot.commands import replies
from bot.commands.command_context import CommandContext, CommandResult, CommandServices, ThreadKind, refuse
from bot.commands.grammar import InvalidCommand, ParsedCommand, parse
from bot.commands.registry import Action, RequiredRole, actions, verbs
from bot.reports import text
from bot.store import Database, Session, audit, bugs, commands, now
from bot.store.models import Command, CommandState, Pull

#: For people without a role: one reaction an hour in a thread, and few replies to a pull request's author.
QUIET_TIME = timedelta(hours=1)
MAX_AUTHOR_REPLIES = 5
#: How long "no role" is remembered, and of how many people.
ROLE_AGE, MAX_ROLES = timedelta(minutes=5), 1000

_WRITE_ROLES = frozenset({"write", "maintain", "admin"})
_TRIAGE_ROLES = _WRITE_ROLES | {"triage"}


class PermissionReader(Protocol):
    """Reads roles from GitHub (`bot.github.reader.Reader`)."""

    def permission(self, target: str, login: str) -> str:
        """The role of a person: none, read, triage, write, maintain, admin."""


#: Brings the row of a pull request up to date; None if GitHub has no such pull request.
Refresh = Callable[[str, int, datetime], Pull | None]


class CommandExecutor:
    """Carries out commands.

    refresh   reads a pull request from GitHub and stores it (`bot.pulls.pull_evaluation`)
    """

    def __init__(
        self,
        database: Database,
        reader: PermissionReader,
        refresh: Refresh,
        services: CommandServices,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._database, self._reader, self._refresh, self._services = database, reader, refresh, services
        self._clock = clock
        self._without_role: dict[tuple[str, str], tuple[str, datetime]] = {}

    def execute(self, row: Command) -> None:
        """Carries out the comment that a command is in."""
        role = self._read_role(row.target, row.author)
        if row.head and (role in _TRIAGE_ROLES or self._is_author(row)):
            self._refresh(row.target, row.number, self._clock())
        with self._database.transaction() as session:
            self._execute(session, row, role)

    def _read_role(self, target: str, login: str) -> str:
        """The role of a login; "none" and "read" are remembered, so strangers cost no requests."""
        role, until = self._without_role.get((target, login), ("", self._clock()))
        if self._clock() < until:
            return role
        role = self._reader.permission(target, login)
        if role not in _TRIAGE_ROLES:
            if len(self._without_role) >= MAX_ROLES:
                self._without_role.clear()
            self._without_role[target, login] = role, self._clock() + ROLE_AGE
        return role

    def _is_author(self, row: Command) -> bool:
        with self._database.reading() as session:
            pull = session.get(Pull, (row.target, row.number))
        return pull is not None and pull.author == row.author

    def give_up(self, first: Command, reason: str) -> None:
        """Marks a comment's commands as failed, without a reply: GitHub does not take one either."""
        present = self._clock()
        with self._database.transaction() as session:
            for row in _lock_commands(session, first):
                commands.complete(row, CommandState.FAILED, reason, present)
                audit.record(
                    session, row.target, "failed", f"command:{row.comment}", reason, present, actor=row.author
                )

    def _execute(self, session: Session, first: Command, role: str) -> None:
        rows = _lock_commands(session, first)
        if not rows:
            return
        present = self._clock()
        refused_before = commands.refused_before(session, rows[0])
        results = [self._execute_command(session, row, role, present) for row in rows]
        for row, result in zip(rows, results, strict=True):
            commands.complete(row, result.state, result.why, present)
            row.role = role
            _record_audit(session, row, result, present)
        shown = _drop_repeated_refusals(results, role, refused_before)
        if role not in _TRIAGE_ROLES:
            shown = _limit_replies(session, rows[0], shown, present)
        if shown:
            replies.post(session, rows[0], shown, present)

    def _execute_command(self, session: Session, row: Command, role: str, present: datetime) -> CommandResult:
        (given,) = parse(row.text, verbs()) or [InvalidCommand(row.text, "is no command any more")]
        if isinstance(given, InvalidCommand):
            why = given.why if given.why.endswith("?") else f"{given.why}."
            return refuse(text.escaped(why) if role in _TRIAGE_ROLES else "")
        action = actions()[given.verb]
        context = self._build_context(session, row, given, role, present)
        if why := _find_permission_error(action, context):
            return refuse(why)
        if context.thread_kind not in action.thread_kinds:
            thread_kinds = " or ".join(sorted(thread_kind.value for thread_kind in action.thread_kinds))
            return refuse(f"`{action.verb.name}` is for {thread_kinds}.")
        return action.handler(session, context)

    def _build_context(
        self, session: Session, row: Command, given: ParsedCommand, role: str, at: datetime
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
            role=role,
            thread_kind=thread_kind,
            commented_at=row.created_at,
            at=at,
            services=self._services,
            values=given.values,
            bug=bug,
            pull=pull,
            head=row.head,
        )


def _lock_commands(session: Session, first: Command) -> Sequence[Command]:
    """The comment's pending commands; none if another process took them.

    None too if the repository was renamed meanwhile: GitHub may know no roles under the old name, so the
    role is read again.
    """
    rows = commands.of_comment(session, first.comment)
    return rows if rows and rows[0].target == first.target else ()


def _find_permission_error(action: Action, context: CommandContext) -> str:
    """Why this person may not give this command; "" if they may."""
    if context.role in _WRITE_ROLES:
        return ""
    is_participant = context.role in _TRIAGE_ROLES or (
        context.pull is not None and context.pull.author == context.author
    )
    if action.required_role is RequiredRole.READER and is_participant:
        return ""
    return (
        f"`{action.verb.name}` needs write access to {context.target}, which you do not have; "
        "ask a maintainer."
    )


def _drop_repeated_refusals(
    results: Sequence[CommandResult], role: str, before: Collection[str]
) -> list[CommandResult]:
    """The results, without the text of repeated refusals.

    People with write access get each reason once in a thread, others one reason in all.

    before  reasons for which the same person was refused in the thread
    """
    return [
        CommandResult("", state=each.state, why=each.why)
        if each.state is CommandState.REFUSED and (each.why in before if role in _WRITE_ROLES else before)
        else each
        for each in results
    ]


def _limit_replies(
    session: Session, row: Command, results: list[CommandResult], at: datetime
) -> list[CommandResult]:
    """What somebody without a role gets: nothing but a reaction now and then, and "" in place of texts.

    The author of the pull request gets some replies.
    """
    recent = commands.done_since(session, row, at - QUIET_TIME)
    pull = session.get(Pull, (row.target, row.number))
    of_author = sum(one.author == row.author for one in recent)
    if pull is not None and pull.author == row.author and of_author < MAX_AUTHOR_REPLIES:
        return results
    if any(one.role not in _TRIAGE_ROLES for one in recent):
        return []
    return [CommandResult("", state=each.state, why=each.why) for each in results]


def _record_audit(session: Session, row: Command, result: CommandResult, at: datetime) -> None:
    subject = result.subject or f"command:{row.comment}"
    why = result.why or f"requested: {row.text}"
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
