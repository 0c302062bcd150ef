"""The commands by name: one file each in `bot/commands/actions`, registered by a decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from bot.commands.command_context import CommandContext, CommandResult, ThreadKind
from bot.commands.grammar import Argument, Verb
from bot.store import Session
from fuzzing.registry import Registry

Handler = Callable[[Session, CommandContext], CommandResult]

EVERYWHERE = frozenset(ThreadKind)
BUG_THREADS = frozenset({ThreadKind.BUG})
PULL_THREADS = frozenset({ThreadKind.PULL})


class RequiredRole(Enum):
    """The role that a command needs. GitHub's roles: read, triage, write, maintain, admin."""

    READER = "read"  # triage access, or the author of the pull request
    WRITER = "write"


@dataclass(frozen=True)
class Action:
    """A command: its grammar, the threads it applies to, the role it needs, its handler."""

    verb: Verb
    thread_kinds: frozenset[ThreadKind]
    required_role: RequiredRole
    handler: Handler


_ACTIONS: Registry[Action] = Registry("command", "bot.commands.actions")


def action(
    name: str,
    help: str,  # noqa: A002
    *arguments: Argument,
    thread_kinds: frozenset[ThreadKind] = EVERYWHERE,
    required_role: RequiredRole = RequiredRole.WRITER,
) -> Callable[[Handler], Handler]:
    """Decorator: registers the handler of `/assay NAME …`."""

    def register(handler: Handler) -> Handler:
        _ACTIONS.add(Action(Verb(name, help, arguments), thread_kinds, required_role, handler), name)
        return handler

    return register


@cache
def actions() -> Mapping[str, Action]:
    """All commands by name."""
    return {name: _ACTIONS.get(name) for name in _ACTIONS.names()}


@cache
def verbs() -> Mapping[str, Verb]:
    """The grammar of all commands, by name."""
    return {name: action.verb for name, action in actions().items()}
