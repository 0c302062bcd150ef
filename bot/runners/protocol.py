"""The interface of runners. A runner is one file of this package, registered by `@runner(name)`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from fuzzing.registry import Registry

Event = dict[str, Any]
OnEvent = Callable[[Event], None]


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
        """The shard as `python -m fuzzing.execute` reads it."""
        ...


class Runner(Protocol):
    """Executes shards somewhere."""

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """Executes `shard`; passes on each event from the calling thread.

        Returns when the shard has ended, or soon after `stop` is set. Raises RunnerError for infrastructure
        failures and ToolchainError for failures of the toolchain. Exceptions of `on_event` end the shard and
        are passed on.
        """
        ...


RunnerFactory = Callable[[int], Runner]
_RUNNERS: Registry[RunnerFactory] = Registry("runner", "bot.runners")
#: Registers what makes a runner with a number of slots.
runner = _RUNNERS.register


def make_runner(name: str, slots: int) -> Runner:
    """The runner of this name, for at most `slots` shards at once; raises UnknownNameError."""
    return _RUNNERS.get(name)(slots)
