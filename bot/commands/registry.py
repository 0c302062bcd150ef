"""The commands by name: one small file each in `bot/commands/actions`, registered by decorator (law 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from bot.commands.asking import Asked, Place, Receipt
from bot.commands.grammar import Argument, Verb
from bot.store import Session
from fuzzing.registry import Registry

Do = Callable[[Session, Asked], Receipt]

EVERYWHERE = frozenset(Place)
OURS = frozenset({Place.BUG})
PULLS = frozenset({Place.PULL})


class Need(Enum):
    """Who may give a command. GitHub's roles: read, triage, write, maintain, admin."""

    READER = "read"  # whoever may see the repository's issues and has a part in this one: its author, too
    WRITER = "write"


@dataclass(frozen=True)
class Action:
    """One command: what may be said, where, by whom, and what is done."""

    verb: Verb
    places: frozenset[Place]
    need: Need
    do: Do


_ACTIONS: Registry[Action] = Registry("command", "bot.commands.actions")


def action(
    name: str,
    help: str,  # noqa: A002 (what it is)
    *arguments: Argument,
    places: frozenset[Place] = EVERYWHERE,
    need: Need = Need.WRITER,
) -> Callable[[Do], Do]:
    """Decorator: makes a function what is done at `/assay NAME …`."""

    def register(do: Do) -> Do:
        _ACTIONS.add(Action(Verb(name, help, arguments), places, need, do), name)
        return do

    return register


@cache
def actions() -> Mapping[str, Action]:
    """All commands by name."""
    return {name: _ACTIONS.get(name) for name in _ACTIONS.names()}


@cache
def verbs() -> Mapping[str, Verb]:
    """What may be said, by name."""
    return {name: action.verb for name, action in actions().items()}
