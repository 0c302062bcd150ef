"""The interface of runners. A runner is one file of this package, registered by `@runner(name)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bot.runners.toolchain_archives import ToolchainArchives
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


class Dispatcher(Protocol):
    """Starts the workflow of runners on GitHub (`bot.github.workflow_dispatch`)."""

    def dispatch(self, inputs: Mapping[str, str]) -> None:
        """Starts a run of the workflow. Raises RefusalError and InfrastructureError."""
        ...

    def cancel(self, name: str) -> None:
        """Cancels the unfinished runs of this name; none is no error."""
        ...


@dataclass(frozen=True)
class RunnerOptions:
    """What the settings say of runners.

    slots       shards at once
    data_dir    folder for what runners exchange with us
    labels      what a machine must have: Ray's NAME=VALUE, or the labels of GitHub's self-hosted runners
    url         our address, as runners reach it
    key         the secret that runners sign with
    archives    toolchains for machines that do not share our disk; None without an object store
    """

    slots: int = 1
    data_dir: Path = Path()
    labels: tuple[str, ...] = ()
    ray_address: str = "auto"
    url: str = ""
    key: bytes = b""
    archives: ToolchainArchives | None = None
    dispatcher: Dispatcher | None = None


RunnerFactory = Callable[[RunnerOptions], Runner]
_RUNNERS: Registry[RunnerFactory] = Registry("runner", "bot.runners")
#: Registers what makes a runner.
runner = _RUNNERS.register


def make_runner(name: str, options: RunnerOptions) -> Runner:
    """The runner of this name; raises UnknownNameError, and SettingsError if the options do not do for it."""
    return _RUNNERS.get(name)(options)
