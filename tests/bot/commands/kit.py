"""What the tests of commands share: a target with a bug, two pull requests, and rooms that write down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.commands import comment_events
from bot.commands.command_execution import CommandExecutor
from bot.commands.comment_queue import CommentQueue
from bot.errors import InfrastructureError
from bot.store import Database, Session
from bot.store.models import Base, Bug, BugState, Command, Effect, Pull
from bot.webhooks.intents import CommentIntent
from bot.worker import Worker

TARGET = "octo/compiler"
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HEAD, BASE = "2" * 40, "1" * 40
BUG_ISSUE, FOREIGN_ISSUE, OTHER_BUG_ISSUE, PULL, FORK_PULL = 3, 4, 5, 7, 8
AUTHOR = "contributor"  # of both pull requests


@dataclass
class RecordedServices:
    """The other rooms: what was asked of them is written down."""

    ran: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    said: list[datetime] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    at_work: int = 1

    def run(
        self, session: Session, pull: Pull, *, requested_by: str, name: str, overrides: Mapping[str, Any]
    ) -> str:
        self.ran.append((pull.number, name, dict(overrides)))
        return f"commit {pull.head[:12]} released by {requested_by}"

    def stop(self, session: Session, pull: Pull, reason: str, commented_at: datetime) -> int:
        self.stopped.append(pull.number)
        self.said.append(commented_at)
        return self.at_work

    def enqueue(
        self,
        session: Session,
        kind: str,
        target: str,
        key: str,
        *,
        bug_id: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        requested_by: str = "",
    ) -> None:
        self.asked.append((kind, key, {**(arguments or {}), "bug": bug_id}))


@dataclass
class CommandHarness:
    """A database with all that commands are about, and GitHub's answers: login → role."""

    database: Database
    roles: dict[str, str] = field(default_factory=dict)
    services: RecordedServices = field(default_factory=RecordedServices)
    at: datetime = START
    down: bool = False
    pushed: str = ""  # the head that GitHub tells by now
    comments: int = 0

    def permission(self, target: str, login: str) -> str:
        if self.down:
            raise InfrastructureError("GitHub did not answer")
        return self.roles.get(login, "none")

    def refresh(self, target: str, number: int, _at: datetime) -> Pull | None:
        with self.database.transaction() as session:
            pull = session.get(Pull, (target, number))
            if pull is not None and self.pushed:
                pull.head = self.pushed
            return pull

    @property
    def worker(self) -> Worker:
        executor = CommandExecutor(self.database, self, self.refresh, self.services, lambda: self.at)
        return Worker(CommentQueue(self.database, executor, lambda: self.at))

    def say(self, body: str, number: int = PULL, author: str = "maintainer", **fields: Any) -> int:
        """A comment comes in; its id."""
        self.comments += 1
        intent = CommentIntent(
            **{
                "target": TARGET,
                "delivery": f"d-{self.comments}",
                "comment": self.comments,
                "number": number,
                "on_pull": number in (PULL, FORK_PULL),
                "author": author,
                "bot": False,
                "association": "NONE",
                "body": body,
                **fields,
            }
        )
        with self.database.transaction() as session:
            comment_events.handle(session, intent)
        return self.comments

    def edit(self, comment: int, body: str) -> None:
        """The text of a comment is replaced."""
        before, self.comments = self.comments, comment - 1
        self.say(body, edited=True)
        self.comments = before

    def reactions(self) -> list[int]:
        """The comments that have a reaction of ours, oldest first."""
        return [int(one.payload["comment"]) for one in self._effects("reaction")]

    def commands(self, comment: int) -> list[Command]:
        with self.database.reading() as session:
            found = session.query(Command).filter_by(comment=comment).order_by(Command.position)
            return list(found)

    def reaction(self, comment: int) -> str:
        (found,) = [one for one in self._effects("reaction") if one.payload["comment"] == comment]
        return str(found.payload["content"])

    def answers(self) -> list[str]:
        """What we wrote, oldest first, without its mark."""
        return [str(one.payload["body"]).partition("\n\n<!-- assay:")[0] for one in self._effects("comment")]

    def bug(self, issue: int = BUG_ISSUE) -> Bug:
        with self.database.reading() as session:
            return session.query(Bug).filter_by(issue=issue).one()

    def _effects(self, kind: str) -> list[Effect]:
        with self.database.reading() as session:
            found = session.query(Effect).filter_by(kind=kind).order_by(Effect.created_at, Effect.key)
            return list(found)

    def advance(self, **by: float) -> None:
        self.at += timedelta(**by)


def make_harness(folder: Path) -> CommandHarness:
    """The target as it is at the beginning; its maintainer has write access."""
    database = Database(f"sqlite:///{folder}/assay.db")
    Base.metadata.create_all(database.engine)
    with database.transaction() as session:
        for number, source in ((PULL, TARGET), (FORK_PULL, "someone/compiler")):
            session.add(_pull(number, source))
        for issue in (BUG_ISSUE, OTHER_BUG_ISSUE):
            session.add(_bug(issue))
    return CommandHarness(database, {"maintainer": "write"})


def _pull(number: int, source: str) -> Pull:
    return Pull(
        target=TARGET,
        number=number,
        head=HEAD,
        base=BASE,
        base_ref="main",
        head_repository=source,
        author=AUTHOR,
        updated_at=START,
    )


def _bug(issue: int) -> Bug:
    return Bug(
        target=TARGET,
        signature=f"{issue:016x}",
        title="Resize: wrong result",
        state=BugState.REPORTED.value,
        reason="reported",
        issue=issue,
        first_seen=START,
        last_seen=START,
        case_id="c" * 64,
        seen=2,
    )
