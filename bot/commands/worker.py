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

from bot.commands import answers
from bot.commands.asking import Asked, Place, Receipt, Tools, refused
from bot.commands.grammar import Call, Mistake, parse
from bot.commands.registry import Action, Need, actions, verbs
from bot.loop import TROUBLE, Loop
from bot.reports import text
from bot.store import Database, Session, audit, bugs, commands, now
from bot.store.models import Command, CommandState, Pull

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
Refresh = Callable[[str, int, datetime], Pull | None]


@dataclass(frozen=True)
class _Known:
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
        reader: Reader,
        refresh: Refresh,
        tools: Tools,
        clock: Callable[[], datetime] = now,
    ) -> None:
        super().__init__("commands", IDLE_S)
        self._database, self._reader, self._refresh, self._tools = database, reader, refresh, tools
        self._clock = clock
        self._not_before: dict[int, datetime] = {}

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Carries out what waits and is due, one comment after another; False if there was nothing."""
        with self._database.reading() as session:
            waiting = commands.waiting(session)
        self._not_before = {one: until for one, until in self._not_before.items() if one in waiting}
        due = [one for one in waiting if self._not_before.get(one, self._clock()) <= self._clock()]
        for comment in due:
            if stop is not None and stop.is_set():
                break
            self._comment(comment)
        return bool(due)

    def _comment(self, comment: int) -> None:
        with self._database.reading() as session:
            rows = commands.of_comment(session, comment)
        if rows:
            self.do(_Turn(self, rows[0]))

    def carry_out(self, row: Command) -> None:
        """Carries out the comment that a command is in: asks what must be asked, then acts."""
        role = self._reader.permission(row.target, row.author)
        known = _Known(role, self._refresh(row.target, row.number, self._clock()) if row.head else None)
        with self._database.transaction() as session:
            self._carry_out(session, row, known)

    def may_wait(self, row: Command) -> bool:
        """Whether a comment is not too old to be carried out later."""
        return row.created_at + PATIENCE > self._clock()

    def put_off(self, comment: int, seconds: float) -> None:
        """Leaves a comment alone for so long."""
        self._not_before[comment] = self._clock() + timedelta(seconds=seconds)

    def give_up(self, asked: Command, reason: str) -> None:
        """Gives a comment up. Nobody is answered: what keeps us from asking keeps us from answering."""
        present = self._clock()
        with self._database.transaction() as session:
            for row in _as_asked(session, asked):
                commands.settle(row, CommandState.FAILED, reason, present)
                audit.record(
                    session, row.target, "failed", f"command:{row.comment}", reason, present, who=row.author
                )

    def _carry_out(self, session: Session, asked: Command, known: _Known) -> None:
        rows = _as_asked(session, asked)
        if not rows:
            return
        present = self._clock()
        told_before = commands.refused_before(session, rows[0])
        receipts = [self._one(session, row, known, present) for row in rows]
        for row, receipt in zip(rows, receipts, strict=True):
            commands.settle(row, receipt.state, receipt.why, present)
            row.role = known.role
            _record(session, row, receipt, present)
        answers.post(session, rows[0], _unless_told(receipts, known.role, told_before), present)

    def _one(self, session: Session, row: Command, known: _Known, present: datetime) -> Receipt:
        (given,) = parse(row.text, verbs()) or [Mistake(row.text, "is no command any more")]
        if isinstance(given, Mistake):
            why = given.why if given.why.endswith("?") else f"{given.why}."
            return refused(text.escaped(why) if known.role in _READERS else "")
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
            said=row.created_at,
            at=at,
            tools=self._tools,
            values=given.values,
            bug=bug,
            pull=pull,
            head=row.head,
        )


@dataclass(frozen=True)
class _Turn:
    """A comment; `row` is its first command."""

    worker: Worker
    row: Command

    @property
    def about(self) -> Mapping[str, object]:
        """The comment."""
        return {"comment": self.row.comment}

    def work(self) -> None:
        """Carries it out."""
        self.worker.carry_out(self.row)

    def give_back(self) -> None:
        """Nothing was written."""

    def wait(self) -> float | None:
        """By its age: nobody reads an answer a day later."""
        return AGAIN.total_seconds() if self.worker.may_wait(self.row) else None

    def postpone(self, error: Exception, seconds: float) -> None:
        """Keeps in mind when."""
        del error  # it is in the log
        self.worker.put_off(self.row.comment, seconds)

    def fail(self, error: Exception) -> None:
        """Gives it up."""
        why = "GitHub could not be asked: " if isinstance(error, TROUBLE) else ""
        self.worker.give_up(self.row, f"{why}{error}")

    def bury(self, bug: Exception) -> None:
        """Gives it up; the others are carried out."""
        reason = f"a bug of Assay: {type(bug).__name__}; its log has the traceback"
        self.worker.give_up(self.row, reason)


def _as_asked(session: Session, asked: Command) -> Sequence[Command]:
    """The comment's commands; none where another process was first.

    Nor where the repository was renamed while GitHub was asked, which may know nobody under its old name: it
    is asked again.
    """
    rows = commands.of_comment(session, asked.comment)
    return rows if rows and rows[0].target == asked.target else ()


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


def _unless_told(receipts: Sequence[Receipt], role: str, before: Collection[str]) -> list[Receipt]:
    """The receipts, silent where a second answer would be noise.

    Maintainers are told each reason once in a thread; others one reason, whatever they try next.

    before  why the same person was refused here before
    """
    return [
        Receipt("", state=each.state, why=each.why)
        if each.state is CommandState.REFUSED and (each.why in before if role in _WRITERS else before)
        else each
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
