"""`/assay invalid`, `dup`, `undup`, `fixed-by`: what maintainers know better than we."""

from __future__ import annotations

from bot.commands import argument_types
from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.grammar import Argument
from bot.commands.registry import BUG_THREADS, action
from bot.errors import UsageError
from bot.store import Session, bugs
from bot.store.models import Bug, BugState


@action(
    "invalid",
    "It is no bug, or meant to be so: nothing more is said about it. `/assay undup` takes it back.",
    Argument("reason", "REASON", str, remainder=True),
    thread_kinds=BUG_THREADS,
)
def invalid(session: Session, context: CommandContext) -> CommandResult:
    """Silences the bug for good."""
    bug = _bug(context)
    reason = context.values.get("reason", "no reason given")
    why = f"ruled invalid by {context.author}: {reason}"
    bugs.set_resolution(session, bug, "invalid", why)
    return CommandResult(why=why, subject=_subject(bug))


@action(
    "dup",
    "It is the same as another issue of ours; what is found from now on is told there.",
    Argument("issue", "#N", argument_types.number, required=True, positional=True),
    thread_kinds=BUG_THREADS,
)
def duplicate(session: Session, context: CommandContext) -> CommandResult:
    """Makes the bug a duplicate."""
    bug, number = _bug(context), context.values["issue"]
    other = bugs.of_issue(session, context.target, number)
    if other is None:
        return refuse(f"#{number} is no issue of ours here. `/assay invalid` silences this one.")
    if other.id == bug.id:
        return refuse("An issue cannot be a duplicate of itself.")
    why = f"a duplicate of #{number}, says {context.author}"
    try:
        bugs.duplicate(session, bug, other, why)
    except UsageError as error:
        return refuse(f"#{number} cannot be it: {error}.")
    return CommandResult(why=why, subject=_subject(bug))


@action(
    "undup", "It is a bug of its own after all; takes back `dup` and `invalid`.", thread_kinds=BUG_THREADS
)
def undo_duplicate(session: Session, context: CommandContext) -> CommandResult:
    """Takes a resolution back."""
    bug = _bug(context)
    if bug.duplicate_of is None and not bug.resolution:
        return refuse("It is neither a duplicate nor invalid.")
    why = f"a bug of its own, says {context.author}"
    bugs.duplicate(session, bug, None, why)
    bugs.set_resolution(session, bug, "", why)
    return CommandResult(why=why, subject=_subject(bug))


@action(
    "fixed-by",
    "A commit fixes it. Assay checks that on the next commits it tests, and says so.",
    Argument("commit", "SHA", argument_types.sha, required=True, positional=True),
    thread_kinds=BUG_THREADS,
)
def fixed_by(session: Session, context: CommandContext) -> CommandResult:
    """Notes which commit is said to fix the bug; nothing is believed before it was tested."""
    bug, commit = _bug(context), context.values["commit"]
    if BugState(bug.state) in (BugState.VERIFIED, BugState.CLOSED):
        return refuse(f"It is {bug.state} already.")
    bug.fixed_by = commit
    session.flush()
    context.services.enqueue(
        session,
        "retest",
        context.target,
        f"retest:{bug.id}:fixed-by:{context.comment}:{context.position}",
        bug_id=bug.id,
        arguments={"purpose": "fix", "commit": commit, "comment": context.comment, "number": context.number},
        requested_by=context.author,
    )
    return CommandResult(
        in_progress=True, why=f"fixed by {commit}, says {context.author}", subject=_subject(bug)
    )


def _bug(context: CommandContext) -> Bug:
    assert context.bug is not None  # the worker sees to it: these are for issues of ours
    return context.bug


def _subject(bug: Bug) -> str:
    return f"bug:{bug.id}"
