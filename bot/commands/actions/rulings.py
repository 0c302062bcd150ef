"""`/assay invalid`, `dup`, `undup`, `fixed-by`: what maintainers know better than we."""

from __future__ import annotations

from bot.commands import values
from bot.commands.asking import Asked, Receipt, refused
from bot.commands.grammar import Argument
from bot.commands.registry import OURS, action
from bot.errors import UsageError
from bot.store import Session, bugs
from bot.store.models import Bug, BugState


@action(
    "invalid",
    "It is no bug, or meant to be so: nothing more is said about it. `/assay undup` takes it back.",
    Argument("reason", "REASON", str, rest=True),
    places=OURS,
)
def invalid(session: Session, asked: Asked) -> Receipt:
    """Silences the bug for good."""
    bug = _bug(asked)
    reason = asked.values.get("reason", "no reason given")
    why = f"ruled invalid by {asked.author}: {reason}"
    bugs.rule(session, bug, "invalid", why)
    return Receipt(why=why, subject=_subject(bug))


@action(
    "dup",
    "It is the same as another issue of ours; what is found from now on is told there.",
    Argument("issue", "#N", values.number, required=True, word=True),
    places=OURS,
)
def duplicate(session: Session, asked: Asked) -> Receipt:
    """Makes the bug a duplicate."""
    bug, number = _bug(asked), asked.values["issue"]
    other = bugs.of_issue(session, asked.target, number)
    if other is None:
        return refused(f"#{number} is no issue of ours here. `/assay invalid` silences this one.")
    if other.id == bug.id:
        return refused("An issue cannot be a duplicate of itself.")
    why = f"a duplicate of #{number}, says {asked.author}"
    try:
        bugs.duplicate(session, bug, other, why)
    except UsageError as error:
        return refused(f"#{number} cannot be it: {error}.")
    return Receipt(why=why, subject=_subject(bug))


@action("undup", "It is a bug of its own after all; takes back `dup` and `invalid`.", places=OURS)
def separate(session: Session, asked: Asked) -> Receipt:
    """Takes a ruling back."""
    bug = _bug(asked)
    if bug.duplicate_of is None and not bug.ruling:
        return refused("It is neither a duplicate nor invalid.")
    why = f"a bug of its own, says {asked.author}"
    bugs.duplicate(session, bug, None, why)
    bugs.rule(session, bug, "", why)
    return Receipt(why=why, subject=_subject(bug))


@action(
    "fixed-by",
    "A commit fixes it. Assay checks that on the next commits it tests, and says so.",
    Argument("commit", "SHA", values.sha, required=True, word=True),
    places=OURS,
)
def fixed_by(session: Session, asked: Asked) -> Receipt:
    """Notes which commit is said to fix the bug; nothing is believed before it was tested."""
    bug, commit = _bug(asked), asked.values["commit"]
    if BugState(bug.state) in (BugState.VERIFIED, BugState.CLOSED):
        return refused(f"It is {bug.state} already.")
    bug.fixed_by = commit
    session.flush()
    asked.tools.ask(
        session,
        "retest",
        asked.target,
        f"retest:{bug.id}:fixed-by:{asked.comment}:{asked.position}",
        bug_id=bug.id,
        arguments={"purpose": "fix", "commit": commit, "comment": asked.comment, "number": asked.number},
        asked_by=asked.author,
    )
    return Receipt(at_work=True, why=f"fixed by {commit}, says {asked.author}", subject=_subject(bug))


def _bug(asked: Asked) -> Bug:
    assert asked.bug is not None  # the worker sees to it: these are for issues of ours
    return asked.bug


def _subject(bug: Bug) -> str:
    return f"bug:{bug.id}"
