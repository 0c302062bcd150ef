"""`/assay reduce`, `bisect`, `test`: long jobs, whose results are posted in the same thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.commands import argument_types
from bot.commands.command_context import CommandContext, CommandResult, ThreadKind, refuse
from bot.commands.grammar import Argument
from bot.commands.job_reply import NUMBER
from bot.commands.registry import BUG_THREADS, action
from bot.reports import text
from bot.reports.templates import pluralize
from bot.store import Session, bugs, findings
from bot.store.models import Bug

_BUG_AND_PULL_THREADS = frozenset({ThreadKind.BUG, ThreadKind.PULL})
#: Jobs of one command on a pull request; for other bugs, use the command on their issues.
MAX_JOBS = 5


@action(
    "reduce",
    "Spends more time on reducing the failing program; on a pull request, the programs of all findings.",
    Argument("budget", "DURATION", argument_types.duration),
    thread_kinds=_BUG_AND_PULL_THREADS,
)
def reduce(session: Session, context: CommandContext) -> CommandResult:
    """Requests a reduction for each bug of the thread."""
    return _request_jobs(session, context, "reduce", {"budget": context.values.get("budget", 0.0)})


@action(
    "bisect",
    "Finds the first bad release or commit, and the first fixed one if there is any.",
    Argument("releases", "FROM..TO", argument_types.releases),
    thread_kinds=_BUG_AND_PULL_THREADS,
)
def bisect(session: Session, context: CommandContext) -> CommandResult:
    """Requests a bisection for each bug of the thread."""
    return _request_jobs(session, context, "bisect", {"releases": context.values.get("releases", "")})


@action(
    "test",
    "Runs the bug's program on the approved head of a pull request, a commit of a branch or a release. "
    "Default: the newest tested commit.",
    Argument("on", "#PR or SHA or RELEASE", argument_types.revision, positional=True),
    thread_kinds=BUG_THREADS,
)
def test(session: Session, context: CommandContext) -> CommandResult:
    """Requests a retest that does not change the bug's state."""
    return _request_jobs(session, context, "retest", {"purpose": "asked", "on": context.values.get("on", "")})


def _request_jobs(
    session: Session, context: CommandContext, kind: str, arguments: Mapping[str, Any]
) -> CommandResult:
    bugs_here = (
        [context.bug] if context.bug is not None else bugs.of_pull(session, context.target, context.number)
    )
    reproducible = [bug for bug in bugs_here if bug.case_id or findings.case_of(session, bug.id)]
    if not reproducible:
        return refuse(
            "No failing program is known here yet."
            if bugs_here or context.pull
            else "This thread has no bug of Assay."
        )
    for bug in reproducible[:MAX_JOBS]:
        _request_job(session, context, kind, bug, arguments)
    left = len(reproducible) - MAX_JOBS
    message = (
        f"{pluralize(len(reproducible), 'bug')} here; jobs for the first {MAX_JOBS} are queued"
        if left > 0
        else ""
    )
    why = f"{kind} requested for {pluralize(min(len(reproducible), MAX_JOBS), 'bug')}"
    subject = f"bug:{reproducible[0].id}" if len(reproducible) == 1 else ""
    return CommandResult(text.plain(message), in_progress=True, why=why, subject=subject)


def _request_job(
    session: Session, context: CommandContext, kind: str, bug: Bug, arguments: Mapping[str, Any]
) -> None:
    context.services.enqueue(
        session,
        kind,
        context.target,
        f"{kind}:{bug.id}:{context.comment}:{context.position}",
        bug_id=bug.id,
        arguments={**arguments, NUMBER: context.number},
        requested_by=context.author,
    )
