"""The work of a service in a process of its own, so that the process that answers webhooks does nothing else.

Compiler output, payloads and reports of any size are read and rendered there: none of it holds the
interpreter of the acknowledgements. Its program is `bot.wiring.work`. The two processes share the database,
and exchange over pipes:

    to it      one line of JSON, the settings; then a byte for each arrival in the inbox; its end means: stop
    from it    lines of JSON: `Started` once, then a `Status` each second

A process that ends is restarted after a pause. It is killed with this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter as Counts
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import structlog

from bot import errors
from bot.background import GRACE_S, MAX_RESTART_S, MIN_RESTART_S
from bot.errors import AssayError, InfrastructureError
from bot.loop import FAULTS
from bot.metrics import Metrics
from bot.processes import killed_with_parent
from bot.settings import Settings, dump_settings
from bot.store import Database

PROGRAM = ("-P", "-m", "bot.wiring.work")
#: Seconds without a status after which the service is not ready: 30 missed ones.
MAX_SILENCE_S = 30.0

log = structlog.get_logger(__name__)


class WorkProcess:
    """`bot.background.Work` in another process."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._input_lock = threading.Lock()  # a byte written after `close` could end in another file
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._error: AssayError | None = None  # of the last start
        self._failure = ""  # why there is no process
        self._status: dict[str, str] = {}
        self._status_at = 0.0  # on the monotonic clock

    def start(self, settings: Settings, database: Database, metrics: Metrics) -> None:
        """Starts the process; returns once its threads run."""
        del database  # the process opens its own connections
        self._stopping.clear()
        self._started.clear()
        self._error = None
        # The kernel kills the process with the thread that started it, so one thread starts each.
        self._thread = threading.Thread(target=self._run, args=(settings, metrics), name="work", daemon=True)
        self._thread.start()
        self._started.wait()
        error = self._start_error()
        if error is not None:
            self._thread.join()
            raise error

    def _start_error(self) -> AssayError | None:
        return self._error

    def stop(self) -> None:
        """Ends the process; kills it after GRACE_S for its threads and as long for its shutdown."""
        self._stopping.set()
        process = self._process
        if process is not None:
            self._close_input(process)
            try:
                process.wait(2 * GRACE_S)
            except subprocess.TimeoutExpired:
                log.warning("work_process.stop_timed_out")
                process.kill()
        if self._thread is not None:
            self._thread.join()

    def wake(self) -> None:
        """Writes a byte; a full pipe already holds one."""
        with self._input_lock:
            process = self._process
            if process is not None and process.stdin is not None and not process.stdin.closed:
                with suppress(OSError):  # full, or its process ended: the next one begins with the inbox
                    os.write(process.stdin.fileno(), b"w")

    def problems(self) -> dict[str, str]:
        """Part → failure, as of the last status."""
        if self._failure:
            return {"work": self._failure}
        silent_s = time.monotonic() - self._status_at
        if silent_s > MAX_SILENCE_S:
            return {"work": f"its process has not reported for {silent_s:.0f} s"}
        return self._status

    def _run(self, settings: Settings, metrics: Metrics) -> None:
        """Starts the process, and restarts it until `stop`, after a pause that doubles."""
        pause_s = MIN_RESTART_S
        while True:
            began = time.monotonic()
            self._work_once(settings, metrics)
            if self._stopping.is_set() or self._error is not None:
                self._started.set()
                return
            metrics.background_failures.labels(name="work").inc()
            log.error("work_process.ended", reason=self._failure, restart_in_s=pause_s)
            if time.monotonic() - began > MAX_RESTART_S:
                pause_s = MIN_RESTART_S
            if self._stopping.wait(pause_s):
                return
            pause_s = min(2 * pause_s, MAX_RESTART_S)

    def _work_once(self, settings: Settings, metrics: Metrics) -> None:
        """Runs one process to its end."""
        first = not self._started.is_set()
        command = killed_with_parent([sys.executable, *self._program])
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(dump_settings(settings))
                process.stdin.flush()
                os.set_blocking(process.stdin.fileno(), False)
                self._process = process
                if self._stopping.is_set():
                    self._close_input(process)
                error = self._read(process, metrics)
            except BrokenPipeError:
                error = None
            finally:
                self._process = None
                self._close_input(process)
        self._failure = str(error) if error else f"its process ended with status {process.returncode}"
        if first and not self._started.is_set():
            self._error = error or InfrastructureError(f"the work of the service: {self._failure}")

    def _read(self, process: subprocess.Popen[bytes], metrics: Metrics) -> AssayError | None:
        """Reads its lines to the end; the error that prevents its start."""
        assert process.stdout is not None
        counted: Counts[tuple[str, str]] = Counts()
        for line in process.stdout:
            said: dict[str, Any] = json.loads(line)
            if "error" in said:
                return _restore_error(said["error"], said["message"])
            self._status, self._status_at = said["problems"], time.monotonic()
            for kind, counter in (("faults", FAULTS), ("failures", metrics.background_failures)):
                for name, total in said[kind].items():
                    counter.labels(name).inc(total - counted[kind, name])
                    counted[kind, name] = total
            self._failure = ""
            self._started.set()
        return None

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        with self._input_lock, suppress(BrokenPipeError):  # it ended before it read everything
            assert process.stdin is not None
            process.stdin.close()


def _restore_error(kind: str, message: str) -> AssayError:
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, AssayError):
        return found(message)
    return InfrastructureError(message)
