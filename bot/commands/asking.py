"""What a command knows when it is carried out, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from bot.store import Session
from bot.store.models import Bug, CommandState, Pull


class Place(Enum):
    """Where a comment stands."""

    BUG = "an issue of ours"
    ISSUE = "another issue"
    PULL = "a pull request"


class Reactions(Enum):
    """What we put under a comment: GitHub's names of them."""

    DONE = "+1"
    AT_WORK = "eyes"
    CONFUSED = "confused"


@dataclass(frozen=True)
class Receipt:
    """What came of a command.

    text       Markdown for whoever asked, made safe already; "" where the reaction says enough
    at_work    whether more follows later
    state      DONE, or REFUSED where the command makes no sense here
    why        one sentence for the audit
    subject    what it was about, as in the audit: "bug:12", "campaign:4"; "" for the thread
    """

    text: str = ""
    at_work: bool = False
    state: CommandState = CommandState.DONE
    why: str = ""
    subject: str = ""


def refused(text: str) -> Receipt:
    """The command was understood and cannot be followed; `text` says why, in one sentence."""
    return Receipt(text, state=CommandState.REFUSED, why=text)


class Tools(Protocol):
    """What commands need from other rooms; `bot.compose` gives it."""

    def run(
        self, session: Session, pull: Pull, *, asked_by: str, name: str, overrides: Mapping[str, Any]
    ) -> str:
        """Releases the head of a pull request and has it tested, once for each `name`; what is to happen."""

    def stop(self, session: Session, pull: Pull, reason: str, said: datetime) -> int:
        """Ends the campaigns of a pull request, and what had been asked for when this was said; how many."""

    def ask(
        self,
        session: Session,
        kind: str,
        target: str,
        key: str,
        *,
        bug_id: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        asked_by: str = "",
    ) -> object:
        """Asks for a job, once for each key (`bot.jobs`)."""


@dataclass(frozen=True)
class Asked:
    """One command in its place.

    values     its arguments
    number     the issue or pull request it stands on
    comment    GitHub's id of the comment, `position` the command's place in it
    bug        the bug whose issue this is
    pull       the pull request, as it was read for this comment
    head       the pull request's commit when the comment came, "" elsewhere
    said       when the comment came; `at` is when the command is carried out
    role       GitHub's role of the author: none, read, triage, write, maintain, admin
    """

    target: str
    number: int
    comment: int
    position: int
    author: str
    role: str
    place: Place
    said: datetime
    at: datetime
    tools: Tools
    values: Mapping[str, Any] = field(default_factory=dict)
    bug: Bug | None = None
    pull: Pull | None = None
    head: str = ""

    @property
    def thread(self) -> str:
        """The issue or pull request as the audit calls it."""
        if self.pull is not None:
            return f"pull:{self.number}"
        return f"bug:{self.bug.id}" if self.bug is not None else f"issue:{self.number}"
