"""Runs a program that prints JSON lines; stops it as a process group."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from bot import processes
from bot.errors import RunnerError
from bot.runners.event_lines import MAX_LINE_BYTES, MalformedLineError, parse_line
from bot.runners.protocol import OnEvent

OnLine = Callable[[bytes], None]

MAX_STDERR_BYTES = 16 << 10  # kept of the log, from its end
_POLL_S = 0.2  # how soon a stop is noticed
_CHUNK = 1 << 16


class Echo(Protocol):
    """Receives a log, such as a binary file."""

    def write(self, chunk: bytes, /) -> object:
        """Takes a chunk."""

    def flush(self) -> object:
        """Flushes."""


@dataclass
class ProcessResult:
    """How a program ended.

    status    exit status; negative: the signal
    log       the end of its log
    stopped   whether we stopped it
    """

    status: int
    log: str
    stopped: bool

    def describe(self) -> str:
        """The ending as text, with the end of the log."""
        how = (
            f"was killed by {_signal(-self.status)}"
            if self.status < 0
            else f"ended with status {self.status}"
        )
        return f"{how}; its log ends:\n{self.log}" if self.log else f"{how} and logged nothing"


def stream(
    label: str,
    command: Sequence[str],
    on_event: OnEvent,
    stop: threading.Event,
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    echo: Echo | None = None,
) -> ProcessResult:
    """As `stream_lines`, and passes on each JSON object that `command` prints.

    Raises RunnerError too if it prints anything but lines of JSON objects.
    """
    return stream_lines(
        label, command, lambda line: on_event(parse_line(line)), stop, cwd=cwd, env=env, echo=echo
    )


def stream_lines(
    label: str,
    command: Sequence[str],
    on_line: OnLine,
    stop: threading.Event,
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    echo: Echo | None = None,
) -> ProcessResult:
    """Runs `command` and passes on each line it prints, from the calling thread.

    Its environment is filtered unless `env` is given; its log is also copied to `echo`. When `stop` is set
    the group gets SIGTERM and, after processes.GRACE_S seconds, SIGKILL; no process of it is left on return.
    Raises RunnerError, with `label` as subject, if it cannot be started or prints a line that is too long, is
    broken off, or makes `on_line` raise MalformedLineError; its other exceptions are passed on.
    """
    try:
        process = subprocess.Popen(
            processes.killed_with_parent(command),
            env=processes.filtered_environment(*processes.SAFE_VARIABLES) if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise RunnerError(f"cannot start {command[0]}: {error}") from error
    with process:
        try:
            return _StreamReader(label, process, on_line, stop, echo).read_until_exit()
        except BaseException:
            processes.kill_group(process.pid, signal.SIGKILL)
            raise


class _StreamReader:
    def __init__(
        self,
        label: str,
        process: subprocess.Popen[bytes],
        on_line: OnLine,
        stop: threading.Event,
        echo: Echo | None,
    ) -> None:
        self._who, self._echo = label, echo
        self._process, self._on_line, self._stop = process, on_line, stop
        self._line = bytearray()
        self._log = bytearray()
        self._kill_at: float | None = None  # when the grace after SIGTERM is over

    def read_until_exit(self) -> ProcessResult:
        with selectors.DefaultSelector() as selector:
            for pipe, take in (
                (self._process.stdout, self._take_output),
                (self._process.stderr, self._take_log),
            ):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, take)
            exited = os.pidfd_open(self._process.pid)
            try:
                selector.register(exited, selectors.EVENT_READ)
                self._read_all(selector, exited)
            finally:
                os.close(exited)
        stopped = self._kill_at is not None
        if self._line and not stopped:
            self._fail(f"broke off inside a line: {bytes(self._line[:200])!r}")
        # Only now is it reaped: until then its id, which is the group's, cannot become another's.
        processes.kill_group(self._process.pid, signal.SIGKILL)
        return ProcessResult(self._process.wait(), self._tail(), stopped)

    def _read_all(self, selector: selectors.BaseSelector, exited: int) -> None:
        running = True
        while running or selector.get_map():
            self._check_stop()
            ready = selector.select(_POLL_S if running else 0)
            if not ready and not running:
                return  # a grandchild holds the pipes open; it is killed with the group
            for key, _ in ready:
                if key.fd == exited:
                    running = False
                    selector.unregister(key.fileobj)
                elif not self._take(key):
                    selector.unregister(key.fileobj)

    @staticmethod
    def _take(key: selectors.SelectorKey) -> bool:
        chunk = os.read(key.fd, _CHUNK)
        if chunk:
            key.data(chunk)
        return bool(chunk)

    def _take_output(self, chunk: bytes) -> None:
        *lines, rest = (bytes(self._line) + chunk).split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            try:
                self._on_line(line)
            except MalformedLineError as error:
                self._fail(f"printed {error}")
        if len(self._line) > MAX_LINE_BYTES:
            self._fail(f"printed a line of more than {MAX_LINE_BYTES} bytes")

    def _fail(self, what: str) -> NoReturn:
        log = self._tail()
        raise RunnerError(f"{self._who} {what}" + (f"; its log ends:\n{log}" if log else ""))

    def _take_log(self, chunk: bytes) -> None:
        self._log = (self._log + chunk)[-MAX_STDERR_BYTES:]
        if self._echo is not None:
            self._echo.write(chunk)
            self._echo.flush()

    def _tail(self) -> str:
        return processes.tail(bytes(self._log))

    def _check_stop(self) -> None:
        if self._kill_at is None and self._stop.is_set():
            processes.kill_group(self._process.pid, signal.SIGTERM)
            self._kill_at = time.monotonic() + processes.GRACE_S
        elif self._kill_at is not None and time.monotonic() > self._kill_at:
            processes.kill_group(self._process.pid, signal.SIGKILL)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
