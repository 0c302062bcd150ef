"""Starts other programs: with a filtered environment, killed with their parent.

The environment is built from an allow-list, so no token, webhook secret or cloud key reaches a compiler. The
kernel kills long-running programs when this process dies.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

#: Variables passed to every program: paths, language, time zone, temporary folder, threads, GPUs. None is
#: secret.
SAFE_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "OMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "CUDA_*",
    "NVIDIA_*",
    "ASSAY_READABLE",
)

#: Variables for network access: proxies and certificate authorities.
NETWORK_VARIABLES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)

#: Niceness of the service's other processes: a third of the web server's share of a processor (sched(7)).
BACKGROUND_NICENESS = 5
GRACE_S = 5.0  # between SIGTERM and SIGKILL
#: What a program may print, in bytes; git gives the files of a commit in one answer.
MAX_OUTPUT = 256 << 20
_CHUNK = 1 << 16

# The child arms prctl(PR_SET_PDEATHSIG) itself, because code between fork and exec is not safe in a process
# with threads. It survives exec. getppid detects that the parent died before.
_KILL_WITH_PARENT_SCRIPT = """\
import ctypes, os, signal, sys
parent, program = int(sys.argv[1]), sys.argv[2:]
if ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0) != 0:
    sys.exit("cannot set the parent-death signal of %s: %s" % (program[0], os.strerror(ctypes.get_errno())))
if os.getppid() != parent:
    sys.exit(1)
try:
    os.execvp(program[0], program)
except OSError as error:
    sys.exit("cannot start %s: %s" % (program[0], error.strerror))
"""


def filtered_environment(*names: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables in `names` that are set (a trailing * matches any ending), and `extra`."""
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in exact or (prefixes and key.startswith(prefixes))
    }
    return kept | dict(extra or {})


def killed_with_parent(command: Sequence[str]) -> list[str]:
    """`command`, wrapped so that the kernel kills it when the starting thread ends.

    The thread, not the process: start it from one that outlives the program.
    """
    return [sys.executable, "-I", "-S", "-c", _KILL_WITH_PARENT_SCRIPT, str(os.getpid()), *command]


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
    stdin: bytes = b"",
    kill_with_parent: bool = False,
    max_output: int = MAX_OUTPUT,
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program; returns its output, whatever its exit status.

    No process of its group is left on return: what it has started and not waited for is killed. A program
    that prints more than `max_output` bytes is killed by SIGKILL, and the last line of its `stderr` says so.
    Raises subprocess.TimeoutExpired after `timeout` seconds, when it has been killed; OSError if it cannot be
    started.
    """
    with subprocess.Popen(
        killed_with_parent(command) if kill_with_parent else list(command),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        exchange = _Exchange(process, stdin, max_output)
        try:
            exchange.run(timeout)
        finally:
            # It is not reaped yet: until then its id, which is the group's, cannot become another's.
            kill_group(process.pid, signal.SIGKILL)
    stdout, stderr = exchange.outputs
    return subprocess.CompletedProcess(list(command), process.returncode, bytes(stdout), bytes(stderr))


class _Exchange:
    """Input to a program, and its bounded output; `Popen.communicate` takes as much as is printed.

    outputs  standard output and standard error
    """

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, max_output: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.outputs = (bytearray(), bytearray())
        self._process, self._stdin, self._max_output = process, process.stdin, max_output
        self._rest = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.stdout, selectors.EVENT_READ, self.outputs[0])
        self._selector.register(process.stderr, selectors.EVENT_READ, self.outputs[1])
        if stdin:
            os.set_blocking(self._stdin.fileno(), False)
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        else:
            self._stdin.close()

    def run(self, timeout: float) -> None:
        """Returns when the program has ended or was killed. Raises subprocess.TimeoutExpired."""
        end, exited = time.monotonic() + timeout, os.pidfd_open(self._process.pid)
        try:
            self._selector.register(exited, selectors.EVENT_READ)
            with self._selector:
                self._read_all(end, exited, timeout)
        finally:
            os.close(exited)

    def _read_all(self, end: float, exited: int, timeout: float) -> None:
        """Until the program has ended and its output is read: a process that it left may hold the pipes."""
        running = True
        while running or self._selector.get_map():
            left = end - time.monotonic()
            if running and left < 0:
                raise subprocess.TimeoutExpired(self._process.args, timeout)
            ready = self._selector.select(left if running else 0)
            if not ready and not running:
                return
            for key, _ in ready:
                if key.fd == exited:
                    running = False
                    self._selector.unregister(exited)
                elif key.data is None:
                    self._write()
                else:
                    self._read(key.fd, key.data)
            if sum(map(len, self.outputs)) > self._max_output:
                kill_group(self._process.pid, signal.SIGKILL)
                self.outputs[1].extend(
                    f"\nkilled: it printed more than {self._max_output:,} bytes\n".encode()
                )
                return

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._stdin.fileno(), self._rest[:_CHUNK]) :]
        except BrokenPipeError:  # it reads no more
            self._rest = self._rest[:0]
        if not self._rest:
            self._selector.unregister(self._stdin)
            self._stdin.close()

    def _read(self, descriptor: int, output: bytearray) -> None:
        if data := os.read(descriptor, _CHUNK):
            output += data
        else:
            self._selector.unregister(descriptor)


def kill_group(pid: int, number: signal.Signals) -> None:
    """Signals the process group of `pid`; ignores groups that have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def tail(output: bytes, lines: int = 20, characters: int = 2000) -> str:
    """The end of what a program printed, for an error message."""
    text = output.decode(errors="replace")[-characters:]
    return "\n".join(text.strip().splitlines()[-lines:])


def first_lines(lines: Iterable[str], count: int) -> str:
    """The first `count` non-empty lines."""
    return "\n".join([line for line in lines if line.strip()][:count])
