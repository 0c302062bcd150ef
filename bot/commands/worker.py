"""Carries out the commands that came in: asks GitHub who may, then acts, one transaction for each comment.

What GitHub has to be asked (the author's role, the pull request as it is now) is asked before the
transaction; in it the rows are locked, the actions done, their answers put into the outbox, and all of it is
told in the audit. Killed before the commit, nothing has happened; killed behind it, everything has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from bot.commands import answers
from bot.commands.asking import Asked, Place, Receipt, Tools, refused
from bot.commands.grammar import Call, Mistake, parse
from bot.commands.registry import Action, Need, actions, verbs
from bot.errors import InfrastructureError, RefusalError, UsageError
from bot.reports import text
from bot.store import Database, Session, audit, bugs, commands, now
from bot.store.campaigns import DATABASE_TROUBLE
from bot.store.models import Command, CommandState, Pull

log = structlog.get_logger(__name__)

#: Between two looks when nobody wakes us; commands of other processes are found so.
IDLE_S = 2.0
#: How long a comment waits after GitHub could not be asked, and how often that is tried.
AGAIN = timedelta(seconds=30)
PATIENCE = timedelta(hours=1)

_WRITERS = frozenset({"write", "maintain", "admin"})
_READERS = _WRITERS | {"triage"}


class Reader(Protocol):
    """What has to be known of GitHub (`bot.github.reading.Reader`)."""

    def permission(self, target: str, login: str) -> str:
        """The role of a person: none, read, triage, write, maintain, admin."""


#: Brings the row of a pull request up to date; None where GitHub has none of that number.
Refresh = Callable[[str, int], Pull | None]


@dataclass(frozen=True)
class _Known:
    """What GitHub said before the transaction."""

    role: str
    pull: Pull | None


class Worker:
    """The thread that carries out commands; `wake` makes it look at once.

    refresh   reads a pull request anew and stores it; bot.pulls has it
    """

    name = "commands"

    def __init__(
        self,
        database: Database,
        reader: Reader,
        refresh: Refresh,
        tools: Tools,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._database, self._reader, self._refresh, self._tools = database, reader, refresh, tools
        self._clock = clock
        self._wake = threading.Event()
        self._not_before: dict[int, datetime] = {}

    def wake(self) -> None:
        """Something came in."""
        self._wake.set()

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.is_set():
            self._wake.clear()
            try:
                self.run_once(stop)
            except DATABASE_TROUBLE:
                log.exception("database_trouble", advice="check ASSAY_DATABASE_URL and the disk")
            self._wake.wait(IDLE_S)

    def run_once(self, stop: threading.Event | None = None) -> int:
        """Carries out what waits and is due; how many comments that were."""
        with self._database.reading() as session:
            waiting = commands.waiting(session)
        done = 0
        for comment in waiting:
            if stop is not None and stop.is_set():
                break
            if self._not_before.get(comment, self._clock()) <= self._clock():
                done += self._comment(comment)
        return done

    def _comment(self, comment: int) -> bool:
        with self._database.reading() as session:
            rows = commands.of_comment(session, comment)
        if not rows:
            return False
        try:
            known = self._ask(rows[0])
        except InfrastructureError as error:
            if rows[0].created_at + PATIENCE > self._clock():
                self._not_before[comment] = self._clock() + AGAIN
                log.warning("a comment waits", comment=comment, reason=str(error))
                return False
            self._fail(comment, f"GitHub could not be asked: {error}")
        except (RefusalError, UsageError) as error:
            self._fail(comment, str(error))
        else:
            self._try(comment, known)
        self._not_before.pop(comment, None)
        return True

    def _ask(self, row: Command) -> _Known:
        role = self._reader.permission(row.target, row.author)
        return _Known(role, self._refresh(row.target, row.number) if row.head else None)

    def _try(self, comment: int, known: _Known) -> None:
        """Carries a comment out; a bug of ours in one command must not end the others."""
        try:
            with self._database.transaction() as session:
                self._carry_out(session, comment, known)
        except DATABASE_TROUBLE:
            raise
        except Exception as error:
            log.exception("internal_error", comment=comment)
            self._fail(comment, f"a bug of Assay: {type(error).__name__}; its log has the traceback")

    def _fail(self, comment: int, reason: str) -> None:
        """Gives a comment up. Nobody is answered: what keeps us from asking keeps us from answering."""
        present = self._clock()
        with self._database.transaction() as session:
            for row in commands.of_comment(session, comment):
                commands.settle(row, CommandState.FAILED, reason, present)
                audit.record(
                    session, row.target, "failed", f"command:{comment}", reason, present, who=row.author
                )

    def _carry_out(self, session: Session, comment: int, known: _Known) -> None:
        rows = commands.of_comment(session, comment)
        if not rows:
            return  # another process was first
        present = self._clock()
        told_before = commands.refused_before(session, rows[0])
        receipts = [self._one(session, row, known, present) for row in rows]
        for row, receipt in zip(rows, receipts, strict=True):
            commands.settle(row, receipt.state, receipt.why, present)
            row.role = known.role
            _record(session, row, receipt, present)
        answers.post(session, rows[0], _unless_told(receipts, told_before), present)

    def _one(self, session: Session, row: Command, known: _Known, present: datetime) -> Receipt:
        (given,) = parse(row.text, verbs()) or [Mistake(row.text, "is no command any more")]
        if isinstance(given, Mistake):
            return refused(text.escaped(f"{given.why}.") if known.role in _READERS else "")
        action = actions()[given.verb]
        asked = self._asked(session, row, given, known, present)
        if why := _not_allowed(action, asked):
            return refused(why)
        if asked.place not in action.places:
            places = " or ".join(sorted(place.value for place in action.places))
            return refused(f"`{action.verb.name}` is for {places}.")
        return action.do(session, asked)

    def _asked(self, session: Session, row: Command, given: Call, known: _Known, at: datetime) -> Asked:
        pull = session.get(Pull, (row.target, row.number)) if row.head else None
        bug = bugs.of_issue(session, row.target, row.number) if pull is None else None
        place = Place.PULL if pull else Place.BUG if bug else Place.ISSUE
        return Asked(
            target=row.target,
            number=row.number,
            comment=row.comment,
            position=row.position,
            author=row.author,
            role=known.role,
            place=place,
            at=at,
            tools=self._tools,
            values=given.values,
            bug=bug,
            pull=pull,
            head=row.head,
        )


def _not_allowed(action: Action, asked: Asked) -> str:
    """Why this person may not say this; "" if they may."""
    if asked.role in _WRITERS:
        return ""
    part = asked.role in _READERS or (asked.pull is not None and asked.pull.author == asked.author)
    if action.need is Need.READER and part:
        return ""
    return (
        f"`{action.verb.name}` needs write access to {asked.target}, which you do not have; "
        "a maintainer can say it."
    )


def _unless_told(receipts: Sequence[Receipt], before: bool) -> list[Receipt]:
    """The receipts, silent where the same person was refused here before: a second answer would be noise."""
    if not before:
        return list(receipts)
    return [
        Receipt("", state=each.state, why=each.why) if each.state is CommandState.REFUSED else each
        for each in receipts
    ]


def _record(session: Session, row: Command, receipt: Receipt, at: datetime) -> None:
    subject = receipt.subject or f"command:{row.comment}"
    why = receipt.why or f"asked for: {row.text}"
    audit.record(
        session,
        row.target,
        receipt.state.value,
        subject,
        why,
        at,
        who=row.author,
        evidence={"command": row.text, "comment": row.comment, "number": row.number, "role": row.role},
    )
