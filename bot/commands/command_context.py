"""The context and the result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from bot.store import Session
from bot.store.models import Bug, CommandState, Pull


class ThreadKind(Enum):
    """The kind of thread that a comment is in."""

    BUG = "an issue of Assay"
    ISSUE = "another issue"
    PULL = "a pull request"


class Reaction(Enum):
    """Reactions to a comment, by GitHub's names."""

    DONE = "+1"
    IN_PROGRESS = "eyes"
    CONFUSED = "confused"


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    text         escaped Markdown for the reply; "" if the reaction is enough
    in_progress  whether a job replies later
    state        DONE, or REFUSED if the command does not apply here
    why          one sentence for the audit
    subject      the audit's subject, "bug:12" or "campaign:4"; "" for the thread
    """

    text: str = ""
    in_progress: bool = False
    state: CommandState = CommandState.DONE
    why: str = ""
    subject: str = ""


def refuse(text: str) -> CommandResult:
    """The result of a valid command that does not apply; `text` is one sentence with the reason."""
    return CommandResult(text, state=CommandState.REFUSED, why=text)


class CommandServices(Protocol):
    """Services of other packages; `bot.wiring` provides them."""

    def run(
        self, session: Session, pull: Pull, *, requested_by: str, name: str, overrides: Mapping[str, Any]
    ) -> str:
        """Approves the head of a pull request and requests its test, once for each `name`."""

    def stop(self, session: Session, pull: Pull, reason: str, commented_at: datetime) -> int:
        """Ends campaigns of a pull request and requests made before `commented_at`; returns their number."""

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
    ) -> object:
        """Enqueues a job, once for each key."""


@dataclass(frozen=True)
class CommandContext:
    """One command and the thread it is in.

    values        its arguments, by name
    number        the issue or pull request
    comment       GitHub's id of the comment; `position` is the command's index in it
    bug           the bug whose issue this is
    pull          the pull request, as read for this comment
    head          the head that the author could see, "" on issues
    commented_at  when the comment was stored; `at` is when the command runs
    role          GitHub's role of the author: none, read, triage, write, maintain, admin
    """

    target: str
    number: int
    comment: int
    position: int
    author: str
    role: str
    thread_kind: ThreadKind
    commented_at: datetime
    at: datetime
    services: CommandServices
    values: Mapping[str, Any] = field(default_factory=dict)
    bug: Bug | None = None
    pull: Pull | None = None
    head: str = ""

    @property
    def audit_subject(self) -> str:
        """The audit's subject for the thread."""
        if self.pull is not None:
            return f"pull:{self.number}"
        return f"bug:{self.bug.id}" if self.bug is not None else f"issue:{self.number}"
