"""The queue of comments with commands: all commands of a comment are carried out in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.commands.command_execution import CommandExecutor
from bot.errors import InfrastructureError
from bot.store import Database, commands, now
from bot.store.models import Command
from bot.worker import Delays, Queue, internal_error_reason

#: Seconds between two polls without `wake`; finds commands that other processes stored.
IDLE_S = 2.0
#: How long a comment waits after a failed request to GitHub, and for how long it is retried.
RETRY_INTERVAL = timedelta(seconds=30)
RETRY_LIMIT = timedelta(hours=1)


class CommentQueue(Queue):
    """Comments with pending commands. Their rows have no lease: the executor's transaction locks them."""

    name = "commands"
    backoff = (RETRY_INTERVAL.total_seconds(),) * (RETRY_LIMIT // RETRY_INTERVAL)

    def __init__(
        self, database: Database, executor: CommandExecutor, clock: Callable[[], datetime] = now
    ) -> None:
        self.idle_s = IDLE_S
        self._database, self._executor, self._clock = database, executor, clock
        self._delays: Delays[int] = Delays(lambda: clock().timestamp())

    def release_other_leases(self, owner: str) -> None:
        """Does nothing: comments have no lease."""

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_CommentRun]:
        """The comments that are due, oldest first."""
        del owner, stop
        with self._database.reading() as session:
            pending = commands.pending_comments(session)
        for comment in [one for one in pending if self._delays.is_due(one)]:
            with self._database.reading() as session:
                rows = commands.of_comment(session, comment)
            if rows:
                yield _CommentRun(self._executor, self._delays, rows[0], self._attempt(rows[0]))

    def _attempt(self, row: Command) -> int:
        """The number of the attempt, by the comment's age: attempts are not stored."""
        return 1 + max(0, (self._clock() - row.created_at) // RETRY_INTERVAL)


@dataclass(frozen=True)
class _CommentRun:
    """An attempt at a comment; `row` is its first command."""

    executor: CommandExecutor
    delays: Delays[int]
    row: Command
    attempt: int

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The id of the comment."""
        return {"comment": self.row.comment}

    def work(self) -> None:
        """Carries out its commands."""
        self.executor.execute(self.row)

    def release_lease(self) -> None:
        """Does nothing: comments have no lease."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Postpones it; the error is in the log."""
        del error
        self.delays.postpone(self.row.comment, seconds)

    def fail(self, error: Exception) -> None:
        """Marks its commands as failed."""
        why = "GitHub did not answer: " if isinstance(error, InfrastructureError) else ""
        self.executor.give_up(self.row, f"{why}{error}")

    def record_internal_error(self, bug: Exception) -> None:
        """Marks its commands as failed; other comments are carried out."""
        self.executor.give_up(self.row, internal_error_reason(bug))
