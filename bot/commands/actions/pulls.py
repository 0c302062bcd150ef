"""`/assay run`, `rerun`, `stop`: a pull request's campaign."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.commands import argument_types
from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.grammar import Argument, ParsedCommand, parse
from bot.commands.registry import PULL_THREADS, action, verbs
from bot.config import names
from bot.reports import text
from bot.reports.templates import pluralize
from bot.store import Session, commands
from bot.store.models import CommandState, Pull

RUN, RERUN, STOP = "run", "rerun", "stop"

#: Longer than a review waits, short enough for one machine.
MAX_BUDGET_S = 3600.0


def _budget(given: str) -> float:
    seconds = argument_types.duration(given)
    if seconds > MAX_BUDGET_S:
        raise ValueError(f"is {MAX_BUDGET_S / 3600:.0f}h at most")
    return seconds


def _sources(given: str) -> list[str]:
    return [names.check_source_name(name) for name in argument_types.names(given)]


@action(
    RUN,
    "Tests the head of this pull request, of a fork too: it approves that commit and no other. SHA names the "
    "commit that you reviewed.",
    Argument("commit", "SHA", argument_types.sha, positional=True),
    Argument("source", "NAMES", _sources),
    Argument("budget", "DURATION", _budget),
    Argument("backend", "NAME", names.check_backend_name),
    Argument("strategy", "NAME", names.check_strategy_name),
    thread_kinds=PULL_THREADS,
)
def run(session: Session, context: CommandContext) -> CommandResult:
    """Approves the head and requests a campaign."""
    return _request_campaign(session, context, _overrides(context.values), context.values.get("commit", ""))


@action(RERUN, "Tests the same commit again with the same settings.", thread_kinds=PULL_THREADS)
def rerun(session: Session, context: CommandContext) -> CommandResult:
    """Requests another campaign of the same head."""
    return _request_campaign(session, context, {})


@action(
    STOP,
    "Ends the campaign of this pull request. The commit is not tested again until somebody requests it. "
    "Findings are kept.",
    thread_kinds=PULL_THREADS,
)
def stop(session: Session, context: CommandContext) -> CommandResult:
    """Ends the campaigns of the pull request."""
    ended = context.services.stop(
        session, _pull(context), f"stopped by {context.author}", context.commented_at
    )
    if not ended and any(
        commented_at < context.commented_at
        for commented_at in _list_command_times(session, context, CommandState.PENDING, RUN, RERUN)
    ):
        return CommandResult(why="earlier requests are cancelled")
    if not ended:
        return refuse("No campaign runs or waits here.")
    return CommandResult(why=f"{pluralize(ended, 'campaign')} stopped")


def _request_campaign(
    session: Session, context: CommandContext, overrides: Mapping[str, Any], commit: str = ""
) -> CommandResult:
    """Approves the head that the author could see: `commit` in full, or the head known before the comment."""
    pull = _pull(context)
    if pull.state != "open":
        return refuse(f"The pull request is {pull.state}.")
    command = text.code(f"/assay run {pull.head}")
    if not pull.head.startswith(commit):
        return refuse(
            f"{text.code(commit[:12])} is not the head. To test the head after a review: {command}."
        )
    if pull.head not in (commit, context.head):
        return refuse(f"The head is newer than your comment. To test it after a review: {command}.")
    if any(
        commented_at > context.commented_at
        for commented_at in _list_command_times(session, context, CommandState.DONE, STOP)
    ):
        return refuse("A later `/assay stop` cancels this. Repeat the command to test the commit anyway.")
    why = context.services.run(
        session,
        pull,
        requested_by=context.author,
        name=f"{context.comment}:{context.position}",
        overrides=overrides,
    )
    return CommandResult(in_progress=True, why=why, subject=f"pull:{pull.number}")


def _list_command_times(
    session: Session, context: CommandContext, state: CommandState, *names: str
) -> list[datetime]:
    """When the thread's commands with these names and this state were written.

    A comment may be carried out before an earlier one that waits for GitHub.
    """
    past = commands.replies(session, context.target, context.number, state)
    return [
        commented_at
        for commented_at, line in past
        for given in parse(line, verbs())
        if isinstance(given, ParsedCommand) and given.verb in names
    ]


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"source": "sources"}
    return {fields.get(name, name): value for name, value in given.items() if name != "commit"}


def _pull(context: CommandContext) -> Pull:
    assert context.pull is not None  # the worker checks `thread_kinds`
    return context.pull
