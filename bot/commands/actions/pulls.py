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

#: Ours: longer than any review waits, short enough for one machine.
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
    "Tests the commit this pull request has now, also one from a fork: it releases that commit and no other.",
    Argument("source", "NAMES", _sources),
    Argument("budget", "DURATION", _budget),
    Argument("backend", "NAME", names.check_backend_name),
    Argument("strategy", "NAME", names.check_strategy_name),
    thread_kinds=PULL_THREADS,
)
def run(session: Session, context: CommandContext) -> CommandResult:
    """Releases the head and asks for a campaign."""
    return _request_campaign(session, context, _overrides(context.values))


@action(RERUN, "Tests the same commit once more, as before.", thread_kinds=PULL_THREADS)
def rerun(session: Session, context: CommandContext) -> CommandResult:
    """Asks for another campaign of the same head."""
    return _request_campaign(session, context, {})


@action(
    STOP,
    "Ends the campaign of this pull request; its commit is not tested again until somebody asks for that. "
    "What was found stays known.",
    thread_kinds=PULL_THREADS,
)
def stop(session: Session, context: CommandContext) -> CommandResult:
    """Ends what is at work."""
    ended = context.services.stop(
        session, _pull(context), f"stopped by {context.author}", context.commented_at
    )
    if not ended and any(
        commented_at < context.commented_at
        for commented_at in _list_command_times(session, context, CommandState.PENDING, RUN, RERUN)
    ):
        return CommandResult(why="what was asked for before will not be tested")
    if not ended:
        return refuse("Nothing is at work here.")
    return CommandResult(why=f"{pluralize(ended, 'campaign')} stopped")


def _request_campaign(
    session: Session, context: CommandContext, overrides: Mapping[str, Any]
) -> CommandResult:
    pull = _pull(context)
    if pull.state != "open":
        return refuse(f"The pull request is {pull.state}.")
    if pull.head != context.head:
        now = text.code(pull.head[:12])
        return refuse(
            f"There was a push since you wrote: the head is {now} now. Look at it, and say it again."
        )
    if any(
        commented_at > context.commented_at
        for commented_at in _list_command_times(session, context, CommandState.DONE, STOP)
    ):
        return refuse("`/assay stop` came after that. Say it again if you want it all the same.")
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
    """When the commands of these names came that are in a state, in this thread.

    One comment may be carried out before an earlier one, about which GitHub could not be asked at once.
    """
    said = commands.said(session, context.target, context.number, state)
    return [
        commented_at
        for commented_at, line in said
        for given in parse(line, verbs())
        if isinstance(given, ParsedCommand) and given.verb in names
    ]


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"source": "sources"}
    return {fields.get(name, name): value for name, value in given.items()}


def _pull(context: CommandContext) -> Pull:
    assert context.pull is not None  # the worker sees to it: these are for pull requests
    return context.pull
