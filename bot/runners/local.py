"""The `local` runner: shards as processes of this machine."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from bot.errors import RunnerError, UsageError
from bot.runners.fair_slots import FairSlots
from bot.runners.process_stream import stream
from bot.runners.protocol import Event, OnEvent, RunnerOptions, Shard, runner
from bot.runners.shard_events import ShardEventValidator
from fuzzing.execute.gpu_slots import CUDA_DEVICE, list_devices

#: How the data plane is started. -P keeps the working folder out of the module path: it may hold anything.
PYTHON_MODULE = (sys.executable, "-P", "-m")
SHARD_PROGRAM = (*PYTHON_MODULE, "fuzzing.execute")


@runner("local")
def make(options: RunnerOptions) -> LocalRunner:
    """The runner for the settings."""
    return LocalRunner(options.slots)


class LocalRunner:
    """Executes at most `slots` shards at once, each in its own process group with a filtered environment.

    The kernel kills the shards if this process dies. `program` gets the path of a shard's file.
    """

    def __init__(self, slots: int, program: Sequence[str] = SHARD_PROGRAM) -> None:
        self._slots = FairSlots(slots)
        self._program = tuple(program)

    @cached_property
    def _gpu_slots(self) -> FairSlots:
        """One for each GPU: two shards would wait for each other's devices (`fuzzing.execute.gpu_slots`)."""
        return FairSlots(min(self._slots.count, max(1, len(list_devices()))))

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """See `bot.runners.protocol.Runner.run`."""
        slots = self._gpu_slots if shard.device == CUDA_DEVICE else self._slots
        with slots.slot(stop) as free, tempfile.TemporaryDirectory(prefix="assay-shard-") as folder:
            if not free:
                return
            file = Path(folder) / "shard.json"
            file.write_text(json.dumps(shard.to_json()), encoding="utf-8")
            events = ShardEventValidator(shard, on_event)
            result = stream("the shard", (*self._program, str(file)), events.take, stop, cwd=Path(folder))
            if not result.stopped and not (events.ended and result.status == 0):
                when = "after" if events.ended else "before"
                raise RunnerError(f"the shard's process stopped {when} its end event: it {result.describe()}")


def run_tool(
    module: str,
    args: Sequence[str],
    on_event: OnEvent,
    stop: threading.Event | None = None,
    *,
    program: Sequence[str] = PYTHON_MODULE,
    env: Mapping[str, str] | None = None,
    echo: IO[bytes] | None = None,
) -> None:
    """Runs a program of the data plane, such as `fuzzing.migrate`, and passes on each JSON object it prints.

    Its environment is filtered unless `env` is given; its log is copied to `echo`, except for a final error
    message. Returns when it ends with status 0, or soon after `stop` is set. Raises RunnerError otherwise, or
    UsageError for a usage error; the message is that of its error event.
    """

    def take(event: Event) -> None:
        if event.get("event") == "error":
            mistake = event.get("kind") == "usage"
            raise (UsageError if mistake else RunnerError)(f"{module}: {event.get('message')}")
        on_event(event)

    with tempfile.TemporaryDirectory(prefix="assay-tool-") as folder:
        result = stream(
            module,
            (*program, module, *args),
            take,
            stop or threading.Event(),
            cwd=Path(folder),
            env=env,
            echo=_Echo(module, echo) if echo is not None else None,
        )
    if not result.stopped and result.status:
        raise RunnerError(f"{module} {result.describe()}")


class _Echo:
    """Passes on whole lines of a log, up to the final error message (`fuzzing.entry_point`)."""

    def __init__(self, module: str, out: IO[bytes]) -> None:
        self._last, self._out = f"python -m {module}: ".encode(), out
        self._line, self._over = b"", False

    def write(self, chunk: bytes, /) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            self._over = self._over or line.startswith(self._last)
            if not self._over:
                self._out.write(line + b"\n")

    def flush(self) -> None:
        self._out.flush()
