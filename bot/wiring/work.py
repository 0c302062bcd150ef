"""The program of `bot.work_process`: the work of a service, without its web server."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from types import FrameType
from typing import Any, BinaryIO

from prometheus_client import Counter

from bot.background import BackgroundWork
from bot.errors import AssayError
from bot.logs import configure
from bot.loop import FAULTS
from bot.metrics import Metrics
from bot.processes import BACKGROUND_NICENESS
from bot.settings import Settings
from bot.store import Database
from bot.wiring.service import service

STATUS_S = 1.0  # between two reports to the web server


def main() -> int:
    """Works until its input ends; 1 if it cannot start."""
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no report
    os.nice(BACKGROUND_NICENESS)
    stopping = _stop_on_signals()
    settings = Settings(**json.loads(_read_line(sys.stdin.fileno())))
    configure(settings.log_format, settings.log_level)
    work, metrics = BackgroundWork(service), Metrics()
    try:
        database = Database(settings.database_url)
        work.start(settings, database, metrics)
    except AssayError as error:
        _write(reports, {"error": type(error).__name__, "message": str(error)})
        return 1
    gc.collect()
    gc.freeze()  # as in the web server
    try:
        reported_at = 0.0
        while not stopping:
            if time.monotonic() - reported_at >= STATUS_S:
                _report(reports, work, metrics)
                reported_at = time.monotonic()
            if not _await_arrivals(sys.stdin.fileno(), work):
                break
    except BrokenPipeError:
        pass  # the web server is gone
    finally:
        work.stop()
        database.close()
    return 0


def _stop_on_signals() -> list[int]:
    """A list that gets the number of the first SIGTERM or SIGINT."""
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)
    return received


def _read_line(descriptor: int) -> bytes:
    """The first line, and nothing behind it: the rest is for `select`."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            break
        line += byte
    return bytes(line)


def _await_arrivals(descriptor: int, work: BackgroundWork) -> bool:
    """Wakes the reader for what arrives within STATUS_S; False at the end of the input."""
    if not select.select([descriptor], [], [], STATUS_S)[0]:
        return True
    arrived = os.read(descriptor, 65536)
    work.wake()
    return bool(arrived)


def _report(reports: BinaryIO, work: BackgroundWork, metrics: Metrics) -> None:
    totals = {"faults": _totals(FAULTS), "failures": _totals(metrics.background_failures)}
    _write(reports, {"problems": work.problems(), **totals})


def _totals(counter: Counter) -> dict[str, float]:
    """Count by the counter's only label."""
    return {
        next(iter(sample.labels.values())): sample.value
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }


def _write(reports: BinaryIO, report: dict[str, Any]) -> None:
    reports.write(json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
