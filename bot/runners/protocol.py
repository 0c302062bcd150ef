"""What a runner is, whatever machine it uses.

A runner is one file of this folder; `@runner(name)` registers how to make it (law 4).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

from bot.errors import RunnerError, UsageError

Event = dict[str, Any]
OnEvent = Callable[[Event], None]


class ToolchainError(RunnerError):
    """The toolchain of a shard does not start: not the runner's fault, and not yet the compiler's."""


class Shard(Protocol):
    """What a runner needs to know of a `fuzzing.execute.shard.Shard`."""

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of its cases, in order."""
        ...

    @property
    def backend(self) -> str:
        """Name of the backend."""
        ...

    @property
    def toolchain(self) -> str:
        """Digest of the toolchain."""
        ...

    @property
    def device(self) -> str:
        """The device that runs compiled models."""
        ...

    @property
    def repeats(self) -> int:
        """How often each case is run."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The shard as `python -m fuzzing.execute.shard` reads it."""
        ...


class Runner(Protocol):
    """Executes shards somewhere."""

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """Executes `shard`, handing each event on as it comes, from the calling thread.

        Returns when the shard has ended, or soon after `stop` is set, with what was done by then handed
        on. Raises RunnerError on trouble with the machine and ToolchainError on trouble with the
        toolchain. What `on_event` raises ends the shard and is passed on.
        """
        ...


RunnerFactory = Callable[[int], Runner]
_FACTORIES: dict[str, RunnerFactory] = {}


def runner(name: str) -> Callable[[RunnerFactory], RunnerFactory]:
    """Registers what makes a runner with a number of slots."""

    def register(make: RunnerFactory) -> RunnerFactory:
        _FACTORIES[name] = make
        return make

    return register


def make_runner(name: str, slots: int) -> Runner:
    """The runner of this name, for at most `slots` shards at once; raises UsageError if there is none."""
    package = import_module("bot.runners")
    for module in iter_modules(package.__path__):
        import_module(f"bot.runners.{module.name}")
    if name not in _FACTORIES:
        raise UsageError(f"{name!r} is no runner; there are: {', '.join(sorted(_FACTORIES))}")
    return _FACTORIES[name](slots)
