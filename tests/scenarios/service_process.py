"""`assay serve` with the compiler of `tests.scenarios.fake_toolchain`, or with real ones, and in a hurry.

Each life is a process forked from one that has imported everything, so that it begins in no time.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from bot.background import BackgroundWork
from bot.cli.service import serve
from bot.github import outbox_queue, rate_limiter
from bot.settings import Settings
from bot.webhooks import inbox_queue
from tests.scenarios import fake_toolchain

#: How long things that only wait may take here, in seconds; in production they are whole seconds and minutes.
SHORT_WAIT_S = 0.05
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class ServiceProcess:
    """One process of the service, from its start to its end; `url` is where deliveries go."""

    def __init__(
        self, variables: Mapping[str, str], log: Path, *, real_compiler: bool = False, hurried: bool = True
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "bot.wiring.service", "bot.reports.campaign_reports"])
        reader, writer = context.Pipe(duplex=False)
        with reader, writer:
            self._process: ForkServerProcess = context.Process(
                target=_run_service,
                args=(dict(variables), str(log), writer, real_compiler, hurried),
                daemon=False,
            )
            self._process.start()
            writer.close()
            with os.fdopen(os.dup(reader.fileno())) as output:
                found = re.search(r"http://[^\s)]+/webhooks/github", output.readline())
        assert found, f"the service did not start: {log.read_text()[-3000:]}"
        self.url = found[0]

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process.pid is not None
        return self._process.pid

    def end(self, how: signal.Signals) -> int:
        """Ends it by a signal; its exit status."""
        os.kill(self.pid, how)
        self._process.join(600)
        code = self._process.exitcode
        assert code is not None, "the service did not end"
        self._process.close()
        return code


def _run_service(
    variables: Mapping[str, str], log: str, output: Connection, real_compiler: bool, hurried: bool
) -> None:
    """The process: what it prints goes to `said`, what it logs to a file."""
    os.setsid()  # an interrupt at the keyboard is for the tests, not for the service under test
    threading.Thread(target=_end_with_parent, daemon=True).start()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # but it must not outlive them
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    os.environ.clear()
    os.environ.update({**kept, **variables})
    os.dup2(output.fileno(), 1)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    if hurried:
        shorten_waits()
    composed: Any = importlib.import_module("bot.wiring.service")
    original = composed.campaign_services

    def campaign_services(settings: Settings, **fields: Any) -> Any:
        return original(settings, **(fields | fake_toolchain.fake_services(settings.data_dir)))

    if not real_compiler:
        composed.campaign_services = campaign_services
    if hurried:
        composed.START_DELAY = timedelta(seconds=4 * SHORT_WAIT_S)
    # A process of its own would have neither the stand-ins nor the short waits.
    serving: Any = serve
    serving.WorkProcess = lambda: BackgroundWork(composed.service)
    serve.command.main(["--host", "127.0.0.1", "--port", "0"], standalone_mode=False)


def _end_with_parent() -> None:
    """Kills this process once the one that asked for it is gone; that of the system is the fork server."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def shorten_waits() -> None:
    """Shortens waits that only keep GitHub and the machine at ease; nothing is decided by them."""
    outbox_queue.LEASE = timedelta(seconds=1)  # a row left `sending` by a kill is taken up after this
    outbox_queue.FIRST_WAIT = timedelta(seconds=SHORT_WAIT_S)
    rate_limiter.RateLimiter.__init__.__kwdefaults__["gap_s"] = 0.0  # type: ignore[index]
    inbox_queue.BATCH_DELAY_S = 0.01
    for module, names in _WAIT_CONSTANTS.items():
        for name in names:
            there = importlib.import_module(module)
            assert hasattr(there, name), f"{module} has no {name}"
            setattr(there, name, SHORT_WAIT_S)
    checking: Any = importlib.import_module("bot.pulls.check_run_updater")
    checking.UPDATE_INTERVAL = timedelta(seconds=1)
    jobs: Any = importlib.import_module("bot.jobs.job_queue")
    jobs.IDLE_S = dict.fromkeys(jobs.IDLE_S, SHORT_WAIT_S)
    since: Any = importlib.import_module("bot.bugs.jobs.first_bad_release")
    since.YIELD_DELAY, since.CHECK_INTERVAL_S = timedelta(seconds=SHORT_WAIT_S), SHORT_WAIT_S
    duties: Any = importlib.import_module("bot.targets.task_queue")
    known = duties.list_tasks
    duties.list_tasks = lambda: tuple(replace(task, interval=timedelta(seconds=1)) for task in known())
    redeliver: Any = importlib.import_module("bot.targets.periodic_tasks.redelivery")
    redeliver.IN_FLIGHT = timedelta(0)  # what is under way is taken twice: guids tell
    settle = importlib.import_module("bot.pulls.pull_lifecycle")
    for function in (settle.handle, settle.apply_update):
        function.__kwdefaults__["debounce"] = timedelta(seconds=4 * SHORT_WAIT_S)


_WAIT_CONSTANTS = {
    "bot.pulls.check_run_loop": ("UPDATE_INTERVAL_S",),
    "bot.campaigns.campaign_queue": ("IDLE_S",),
    "bot.github.outbox_queue": ("IDLE_S",),
    "bot.leases": ("POLL_S",),
    "bot.targets.task_queue": ("IDLE_S",),
    "bot.commands.comment_queue": ("IDLE_S",),
}
