"""`assay serve` with the compiler of `tests.scenarios.toolchain`, and in a hurry.

Each life is a process forked from one that has imported everything, so that it begins in no time.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from bot.cli import serve
from bot.github import governor, publisher
from bot.settings import Settings
from bot.webhooks import reader
from tests.scenarios import toolchain

#: How long things that only wait may take here, in seconds; in production they are whole seconds and minutes.
SOON = 0.05
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Life:
    """One process of the service, from its start to its end; `url` is where deliveries go."""

    def __init__(self, variables: Mapping[str, str], log: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "bot.compose.service", "bot.reports.campaign"])
        reader, writer = context.Pipe(duplex=False)
        with reader, writer:
            self._process: ForkServerProcess = context.Process(
                target=_live, args=(dict(variables), str(log), writer), daemon=False
            )
            self._process.start()
            writer.close()
            with os.fdopen(os.dup(reader.fileno())) as said:
                found = re.search(r"http://[^\s)]+/webhooks/github", said.readline())
        assert found, f"the service did not start: {log.read_text()[-3000:]}"
        self.url = found[0]

    def end(self, how: signal.Signals) -> int:
        """Ends it by a signal; its exit status."""
        assert self._process.pid is not None
        os.kill(self._process.pid, how)
        self._process.join(600)
        code = self._process.exitcode
        assert code is not None, "the service did not end"
        self._process.close()
        return code


def _live(variables: Mapping[str, str], log: str, said: Connection) -> None:
    """The process: what it prints goes to `said`, what it logs to a file."""
    os.setsid()  # an interrupt at the keyboard is for the tests, not for the service under test
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # but it must not outlive them
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    os.environ.clear()
    os.environ.update({**kept, **variables})
    os.dup2(said.fileno(), 1)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    hurry()
    composed: Any = importlib.import_module("bot.compose.service")
    original = composed.campaign_services

    def campaign_services(settings: Settings, **fields: Any) -> Any:
        return original(settings, **(fields | toolchain.replaced(settings.data_dir)))

    composed.campaign_services = campaign_services
    composed.SETTLE = timedelta(seconds=4 * SOON)
    serve.command.main(["--host", "127.0.0.1", "--port", "0"], standalone_mode=False)


def hurry() -> None:
    """Shortens waits that only keep GitHub and the machine at ease; nothing is decided by them."""
    publisher.LEASE = timedelta(seconds=1)  # a row left `sending` by a kill is taken up after this
    publisher.FIRST_WAIT = timedelta(seconds=SOON)
    governor.Governor.__init__.__kwdefaults__["gap_s"] = 0.0  # type: ignore[index]
    reader.GATHER_S = 0.01
    for module, names in _WAITS.items():
        for name in names:
            there = importlib.import_module(module)
            assert hasattr(there, name), f"{module} has no {name}"
            setattr(there, name, SOON)
    checking: Any = importlib.import_module("bot.pulls.checking")
    checking.EVERY = timedelta(seconds=1)
    jobs: Any = importlib.import_module("bot.jobs.worker")
    jobs.IDLE_S = dict.fromkeys(jobs.IDLE_S, SOON)
    since: Any = importlib.import_module("bot.jobs.kinds.since")
    since.AWAY, since.LOOK_S = timedelta(seconds=SOON), SOON
    duties: Any = importlib.import_module("bot.targets.keeper")
    known = duties.known
    duties.known = lambda: tuple(replace(duty, every=timedelta(seconds=1)) for duty in known())
    redeliver: Any = importlib.import_module("bot.targets.duties.redeliver")
    redeliver.UNDER_WAY = timedelta(0)  # what is under way is taken twice: guids tell
    settle = importlib.import_module("bot.pulls.intake")
    for function in (settle.handle, settle.follow):
        function.__kwdefaults__["settle"] = timedelta(seconds=4 * SOON)


_WAITS = {
    "bot.pulls.watch": ("CHECKS_S",),
    "bot.campaigns.engine": ("IDLE_S",),
    "bot.github.publisher": ("IDLE_S",),
    "bot.leases": ("LOOK_S",),
    "bot.targets.keeper": ("IDLE_S",),
    "bot.commands.worker": ("IDLE_S",),
}
