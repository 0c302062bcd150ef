"""`/assay rebase`: the branch of a proposed test, on the newest tested commit."""

from __future__ import annotations

from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.job_reply import NUMBER
from bot.commands.registry import PULL_THREADS, action
from bot.store import Session, bugs, proposals


@action(
    "rebase",
    "Writes and proves a proposed test again, on the newest tested commit, unless others added to it.",
    thread_kinds=PULL_THREADS,
)
def rebase(session: Session, context: CommandContext) -> CommandResult:
    """Requests the job that proposed the test, for this pull request."""
    known = proposals.of_pull(session, context.target, context.number)
    if not known:
        return refuse("This pull request is no open proposal of a test.")
    if "covers" in known[0].proof:
        return refuse("Tests from passing cases are not rebased: the next batch is on a newer commit.")
    bug = bugs.find(session, context.target, known[0].signature)
    if bug is None:
        return refuse("The bug of this test was deleted.")
    context.services.enqueue(
        session,
        "propose",
        context.target,
        f"rebase:{context.comment}:{context.position}",
        bug_id=bug.id,
        arguments={NUMBER: context.number, "rebase": True},
        requested_by=context.author,
    )
    return CommandResult(in_progress=True, why="a rebase was requested", subject=f"bug:{bug.id}")
