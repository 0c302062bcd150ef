"""`/assay invalid`, `dup`, `undup`, `fixed-by`: maintainers' resolutions of bugs."""

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
    "Not a bug, or intended: Assay reports nothing more about it. `/assay undup` reverts this.",
    Argument("reason", "REASON", str, remainder=True),
    thread_kinds=BUG_THREADS,
)
def invalid(session: Session, context: CommandContext) -> CommandResult:
    """Resolves the bug as invalid."""
    bug = _bug(context)
    reason = context.values.get("reason", "no reason given")
    why = f"marked invalid by {context.author}: {reason}"
    bugs.set_resolution(session, bug, "invalid", why)
    return CommandResult(why=why, subject=_subject(bug))


@action(
    "dup",
    "A duplicate of another issue of Assay, which gets all further reports.",
    Argument("issue", "#N", argument_types.number, required=True, positional=True),
    thread_kinds=BUG_THREADS,
)
def duplicate(session: Session, context: CommandContext) -> CommandResult:
    """Resolves the bug as a duplicate."""
    bug, number = _bug(context), context.values["issue"]
    other = bugs.of_issue(session, context.target, number)
    if other is None:
        return refuse(f"Assay did not file #{number} here. `/assay invalid` mutes this issue.")
    if other.id == bug.id:
        return refuse("An issue cannot be a duplicate of itself.")
    why = f"marked a duplicate of #{number} by {context.author}"
    try:
        bugs.duplicate(session, bug, other, why)
    except UsageError as error:
        return refuse(f"This cannot be a duplicate of #{number}: {error}.")
    return CommandResult(why=why, subject=_subject(bug))


@action("undup", "Reverts `dup` and `invalid`.", thread_kinds=BUG_THREADS)
def undo_duplicate(session: Session, context: CommandContext) -> CommandResult:
    """Reverts a resolution."""
    bug = _bug(context)
    if bug.duplicate_of is None and not bug.resolution:
        return refuse("This is neither a duplicate nor invalid.")
    why = f"resolution reverted by {context.author}"
    bugs.duplicate(session, bug, None, why)
    bugs.set_resolution(session, bug, "", why)
    return CommandResult(why=why, subject=_subject(bug))


@action(
    "fixed-by",
    "Names the commit that fixes it. Assay verifies the fix by retests.",
    Argument("commit", "SHA", argument_types.sha, required=True, positional=True),
    thread_kinds=BUG_THREADS,
)
def fixed_by(session: Session, context: CommandContext) -> CommandResult:
    """Records the commit that should fix the bug and requests a retest on it."""
    bug, commit = _bug(context), context.values["commit"]
    if BugState(bug.state) in (BugState.VERIFIED, BugState.CLOSED):
        return refuse(f"This is already {bug.state}.")
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
        in_progress=True, why=f"{context.author} named {commit} as the fix", subject=_subject(bug)
    )


def _bug(context: CommandContext) -> Bug:
    assert context.bug is not None  # the worker checks `thread_kinds`
    return context.bug


def _subject(bug: Bug) -> str:
    return f"bug:{bug.id}"
