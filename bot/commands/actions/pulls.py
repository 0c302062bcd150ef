"""`/assay run`, `rerun`, `stop`: a pull request's campaign."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.commands import values
from bot.commands.asking import Asked, Receipt, refused
from bot.commands.grammar import Argument, Call, parse
from bot.commands.registry import PULLS, action, verbs
from bot.config import names
from bot.reports import text
from bot.reports.templating import counted
from bot.store import Session, commands
from bot.store.models import CommandState, Pull

RUN, RERUN, STOP = "run", "rerun", "stop"

#: Ours: longer than any review waits, short enough for one machine.
MAX_BUDGET_S = 3600.0


def _budget(given: str) -> float:
    seconds = values.duration(given)
    if seconds > MAX_BUDGET_S:
        raise ValueError(f"is {MAX_BUDGET_S / 3600:.0f}h at most")
    return seconds


def _sources(given: str) -> list[str]:
    return [names.source_name(name) for name in values.names(given)]


@action(
    RUN,
    "Tests the commit this pull request has now, also one from a fork: it releases that commit and no other.",
    Argument("source", "NAMES", _sources),
    Argument("budget", "DURATION", _budget),
    Argument("backend", "NAME", names.backend_name),
    Argument("strategy", "NAME", names.strategy_name),
    places=PULLS,
)
def run(session: Session, asked: Asked) -> Receipt:
    """Releases the head and asks for a campaign."""
    return _run(session, asked, _overrides(asked.values))


@action(RERUN, "Tests the same commit once more, as before.", places=PULLS)
def rerun(session: Session, asked: Asked) -> Receipt:
    """Asks for another campaign of the same head."""
    return _run(session, asked, {})


@action(
    STOP,
    "Ends the campaign of this pull request; its commit is not tested again until somebody asks for that. "
    "What was found stays known.",
    places=PULLS,
)
def stop(session: Session, asked: Asked) -> Receipt:
    """Ends what is at work."""
    ended = asked.tools.stop(session, _pull(asked), f"stopped by {asked.author}", asked.said)
    if not ended and any(
        came < asked.said for came in _came(session, asked, CommandState.PENDING, RUN, RERUN)
    ):
        return Receipt(why="what was asked for before will not be tested")
    if not ended:
        return refused("Nothing is at work here.")
    return Receipt(why=f"{counted(ended, 'campaign')} stopped")


def _run(session: Session, asked: Asked, overrides: Mapping[str, Any]) -> Receipt:
    pull = _pull(asked)
    if pull.state != "open":
        return refused(f"The pull request is {pull.state}.")
    if pull.head != asked.head:
        now = text.code(pull.head[:12])
        return refused(
            f"There was a push since you wrote: the head is {now} now. Look at it, and say it again."
        )
    if any(came > asked.said for came in _came(session, asked, CommandState.DONE, STOP)):
        return refused("`/assay stop` came after that. Say it again if you want it all the same.")
    why = asked.tools.run(
        session,
        pull,
        asked_by=asked.author,
        name=f"{asked.comment}:{asked.position}",
        overrides=overrides,
    )
    return Receipt(at_work=True, why=why, subject=f"pull:{pull.number}")


def _came(session: Session, asked: Asked, state: CommandState, *names: str) -> list[datetime]:
    """When the commands of these names came that are in a state, in this thread.

    One comment may be carried out before an earlier one, about which GitHub could not be asked at once.
    """
    said = commands.said(session, asked.target, asked.number, state)
    return [
        came
        for came, line in said
        for given in parse(line, verbs())
        if isinstance(given, Call) and given.verb in names
    ]


def _overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"source": "sources"}
    return {fields.get(name, name): value for name, value in given.items()}


def _pull(asked: Asked) -> Pull:
    assert asked.pull is not None  # the worker sees to it: these are for pull requests
    return asked.pull
