"""What a command knows when it is carried out, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from bot.store import Session
from bot.store.models import Bug, CommandState, Pull


class ThreadKind(Enum):
    """Where a comment stands."""

    BUG = "an issue of ours"
    ISSUE = "another issue"
    PULL = "a pull request"


class Reaction(Enum):
    """What we put under a comment: GitHub's names of them."""

    DONE = "+1"
    IN_PROGRESS = "eyes"
    CONFUSED = "confused"


@dataclass(frozen=True)
class CommandResult:
    """What came of a command.

    text       Markdown for whoever asked, made safe already; "" where the reaction says enough
    in_progress    whether more follows later
    state      DONE, or REFUSED where the command makes no sense here
    why        one sentence for the audit
    subject    what it was about, as in the audit: "bug:12", "campaign:4"; "" for the thread
    """

    text: str = ""
    in_progress: bool = False
    state: CommandState = CommandState.DONE
    why: str = ""
    subject: str = ""


def refuse(text: str) -> CommandResult:
    """The command was understood and cannot be followed; `text` says why, in one sentence."""
    return CommandResult(text, state=CommandState.REFUSED, why=text)


class CommandServices(Protocol):
    """What commands need from other rooms; `bot.wiring` gives it."""

    def run(
        self, session: Session, pull: Pull, *, requested_by: str, name: str, overrides: Mapping[str, Any]
    ) -> str:
        """Releases the head of a pull request and has it tested, once for each `name`; what is to happen."""

    def stop(self, session: Session, pull: Pull, reason: str, commented_at: datetime) -> int:
        """Ends the campaigns of a pull request, and what had been asked for when this was said; how many."""

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
        """Asks for a job, once for each key (`bot.jobs`)."""


@dataclass(frozen=True)
class CommandContext:
    """One command in its place.

    values     its arguments
    number     the issue or pull request it stands on
    comment    GitHub's id of the comment, `position` the command's place in it
    bug        the bug whose issue this is
    pull       the pull request, as it was read for this comment
    head       the pull request's commit when the comment came, "" elsewhere
    commented_at       when the comment came; `at` is when the command is carried out
    role       GitHub's role of the author: none, read, triage, write, maintain, admin
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
        """The issue or pull request as the audit calls it."""
        if self.pull is not None:
            return f"pull:{self.number}"
        return f"bug:{self.bug.id}" if self.bug is not None else f"issue:{self.number}"
