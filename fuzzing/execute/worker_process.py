"""The supervisor's view of one worker process: pipes, status page, log, exit."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import mmap
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fuzzing
from fuzzing import backends
from fuzzing.backends.base import library_modules
from fuzzing.cases import TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute import batches, protocol
from fuzzing.execute.case_cache import cached_request
from fuzzing.execute.compiler_cache import resolve_cache_folder
from fuzzing.execute.forkserver import ForkedWorker, ForkServer, end_process
from fuzzing.execute.gpu_slots import VISIBLE_DEVICES
from fuzzing.execute.process_usage import process_tree, resident_bytes, unnamed_file_bytes
from fuzzing.execute.sandbox.launch import sandboxed_command
from fuzzing.execute.scratch_folder import ScratchFolder, sweep
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.write_buffer import WriteBuffer
from fuzzing.file_trees import tree_bytes
from fuzzing.outcomes import MAX_TEXT

_PACKAGE = Path(fuzzing.__file__).parent
#: The only variables of the supervisor's environment that a worker gets; none holds a credential.
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "TZ")
#: numpy's linear algebra would start a thread for each processor, and threads prevent forking.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
PIPE_BYTES = 1 << 20  # room for queued cases and answers; Linux allows this size without privilege
#: Between SIGABRT, at which faulthandler writes, and SIGKILL. On a busy machine a process may not run for
#: seconds, and without the traceback the place of the hang is lost.
_ABORT_GRACE_S = 5.0


@dataclass(frozen=True)
class ProcessExit:
    """How a worker ended: `signal` by name or "", exit code or None, and its last output."""

    signal: str
    exit_code: int | None
    native: str
    log: str


@cache
def _sweep_once() -> None:
    """Removes the folders of killed workers, once per process."""
    sweep()


class WorkerProcess:
    """A started worker. Never blocks: writes are buffered, reads return what is available.

    cuda        the CUDA device it sees, none by default
    cores       the processors it may use, those of the supervisor by default
    forkserver  forks it; None for an interpreter of its own
    kind        of its programs: a forkserver that starts for it imports their library before it forks
    started     when it was started
    """

    def __init__(
        self,
        command: WorkerCommand,
        cuda: str = "",
        cores: Collection[int] = (),
        forkserver: ForkServer | None = None,
        kind: str = "",
    ) -> None:
        _sweep_once()
        self.command = command
        self.cuda = cuda
        self.forkserver = forkserver
        self.kind = kind
        self.cores = sorted(cores)
        self.started = time.monotonic()
        self._reader = protocol.FrameReader()
        self._batch = batches.RequestBatch()
        self._write_buffer = WriteBuffer()
        try:
            with contextlib.ExitStack() as resources:
                self._process = self._open(resources)
                self._resources = resources.pop_all()
        except OSError as error:
            raise ToolchainError(f"cannot start {command.python}: {error.strerror}") from error

    @property
    def is_forked(self) -> bool:
        """Whether a forkserver has forked it; not if that is the worker itself, as it cannot be forked."""
        return isinstance(self._process, ForkedWorker) and self._process.is_forked

    def _open(self, resources: contextlib.ExitStack) -> subprocess.Popen[bytes] | ForkedWorker:
        """Starts the process. Everything to be closed later is added to `resources`."""
        folder = self.forkserver.folder() if self.forkserver else ScratchFolder()
        resources.callback(folder.remove)
        self.scratch = folder.path
        log = tempfile.TemporaryFile(prefix="log-", dir=self.scratch, buffering=0)  # noqa: SIM115 - held
        self._log = resources.enter_context(log)
        self._page_fd = os.memfd_create("assay-status")
        resources.callback(os.close, self._page_fd)
        os.ftruncate(self._page_fd, mmap.PAGESIZE)
        self._page = resources.enter_context(mmap.mmap(self._page_fd, 0))
        with contextlib.ExitStack() as worker_ends:
            worker_in, self._write_fd = os.pipe()
            worker_ends.callback(os.close, worker_in)
            resources.callback(os.close, self._write_fd)
            self.read_fd, worker_out = os.pipe()
            worker_ends.callback(os.close, worker_out)
            resources.callback(os.close, self.read_fd)
            for end in (self._write_fd, self.read_fd):
                with contextlib.suppress(OSError):  # the kernel's limit for all pipes together may be reached
                    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
                os.set_blocking(end, False)
            return self._start(worker_in, worker_out)

    def _start(self, worker_in: int, worker_out: int) -> subprocess.Popen[bytes] | ForkedWorker:
        cache_folder = resolve_cache_folder(self.command)
        log = self._log.fileno()
        descriptors = {"in": worker_in, "out": worker_out, "log": log, "page": self._page_fd}
        if self.forkserver is None:
            return self._start_interpreter(descriptors, self.scratch, cache_folder)
        root = self.forkserver.path

        def start(control: socket.socket) -> subprocess.Popen[bytes]:
            return self._start_interpreter({"forkserver": control.fileno(), "log": log}, root, cache_folder)

        environment = self._environment(self.scratch, cache_folder)
        options = self.command.options or {}
        request = {
            "environment": environment,
            "scratch": self.scratch,
            "cores": self.cores,
            "options": dict(options),
        }
        return self.forkserver.spawn(start, request, descriptors)

    def _start_interpreter(
        self, descriptors: Mapping[str, int], scratch: str, cache_folder: str
    ) -> subprocess.Popen[bytes]:
        command, backend = self.command, backends.get(self.command.backend)
        spec = {
            "backend": command.backend,
            "device": command.device,
            "options": command.options or {},
            "packages": backend.packages,
            "libraries": self._libraries() if self.forkserver else (),
            "root": str(_PACKAGE),
        }
        python = str(Path(command.python).absolute())
        if not os.access(python, os.X_OK):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        worker = [python, "-I", str(_PACKAGE / "execute" / "worker.py"), json.dumps({**spec, **descriptors})]
        return subprocess.Popen(
            sandboxed_command(
                worker,
                writable=[scratch, *([cache_folder] if cache_folder else [])],
                readable=[_PACKAGE, *([command.backend] if Path(command.backend).is_absolute() else [])],
                best=command.isolation,
                cores=self.cores,
                # Private writable memory, touched or not. The supervisor limits resident memory; this stops
                # one huge allocation before it is touched. Generous, since compilers reserve more than they
                # use.
                memory_bytes=4 * int(command.limits.memory_bytes),
                file_bytes=int(command.limits.file_bytes),
                # Files in memory count as memory there.
                total_bytes=int(command.limits.memory_bytes + command.limits.scratch_bytes),
            ),
            stdin=subprocess.DEVNULL,
            stdout=descriptors["log"],
            stderr=descriptors["log"],
            pass_fds=tuple(descriptors.values()),
            cwd=scratch,
            env=self._environment(scratch, cache_folder),
            start_new_session=True,
        )

    def _libraries(self) -> list[str]:
        backend = backends.get(self.command.backend)
        kinds = (self.kind, *self.command.kinds)
        return list(dict.fromkeys(module for kind in kinds for module in library_modules(backend, kind)))

    def _environment(self, scratch: str, cache_folder: str) -> dict[str, str]:
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment |= {"HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", **_ONE_THREAD}
        environment[VISIBLE_DEVICES] = self.cuda
        if cache_folder:
            environment["ASSAY_CACHE"] = cache_folder
        for name, value in backends.get(self.command.backend).environment.items():
            environment[name] = value.replace("{scratch}", scratch).replace("{cache}", cache_folder)
        return environment | dict(self.command.environment)

    @property
    def write_fd(self) -> int:
        """The descriptor to poll for writing."""
        return self._write_fd

    @property
    def unsent(self) -> int:
        """Number of buffered bytes."""
        return self._write_buffer.size + self._batch.size

    def queue(self, number: int, case: TestCase, instrumentation: Mapping[str, Any]) -> None:
        """Queues a case for the next `flush`: several at once wake the worker once.

        instrumentation  arguments of `fuzzing.backends.base.Instrumentation`
        """
        batch = self._batch
        if instrumentation != batch.instrumentation:
            if batch:
                self._write_buffer.add(batch.frame())
            batch.instrumentation = instrumentation
        batch.add(number, *cached_request(case))
        if batch.size >= batches.FULL:
            self._write_buffer.add(batch.frame())

    def flush(self) -> None:
        """Writes what the pipe takes. A dead worker is noticed when reading, not here."""
        if self._batch:
            self._write_buffer.add(self._batch.frame())
        try:
            self._write_buffer.write(self._write_fd)
        except BrokenPipeError:
            self._write_buffer.clear()

    def receive(self) -> Iterator[tuple[protocol.Header, bytes] | None]:
        """The frames received; None last if the worker has closed its end."""
        while True:
            try:
                data = os.read(self.read_fd, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                yield None
                return
            yield from self._reader.feed(data)

    def status(self) -> protocol.Status:
        """What the worker does now, or did last."""
        return protocol.read_status(self._page)

    def has_exited(self) -> bool:
        """Whether the process has ended, even if its children have not."""
        return self._process.poll() is not None

    def process_count(self) -> int:
        """Number of its processes, itself included; 0 if it is gone."""
        return len(process_tree(self._process.pid)) if self._process.poll() is None else 0

    def resident(self) -> int:
        """Resident memory in bytes, of the process and its descendants; 0 if it is gone."""
        return resident_bytes(self._process.pid)

    def file_bytes(self, limit: int) -> int:
        """Bytes of its scratch folder and of its open files without a name, counted until above `limit`."""
        return tree_bytes(self.scratch, limit) + unnamed_file_bytes(self._process.pid)

    def log_tail(self, begin: int, end: int | None = None) -> str:
        """The end of the log between two byte positions, by default up to now."""
        end = os.fstat(self._log.fileno()).st_size if end is None else end
        begin = max(begin, end - MAX_TEXT)
        return os.pread(self._log.fileno(), max(0, end - begin), begin).decode(errors="replace")

    def abort(self) -> None:
        """Requests a traceback in the log by SIGABRT, which faulthandler handles before the process dies."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGABRT)  # a launcher passes it on
            try:
                self._process.wait(_ABORT_GRACE_S)
            except subprocess.TimeoutExpired:
                return  # `end` sends SIGKILL

    def end(self, log_begin: int = 0, *, grace_s: float = 0.0) -> ProcessExit:
        """Ends the worker and all its children, frees its resources, and returns how it died.

        A worker that is exiting by itself gets `grace_s` seconds, so that its own status is kept.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        end_process(self._process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        printed, native = split_native_traceback(self.log_tail(log_begin))
        self._resources.close()
        name = signal.Signals(-code).name if code < 0 else ""
        return ProcessExit(name, code if code >= 0 else None, native, printed)


_NATIVE = re.compile(r"^Fatal Python error: |^Fatal error", re.MULTILINE)


def split_native_traceback(text: str) -> tuple[str, str]:
    """The process's output, and the text that faulthandler added at the end."""
    begins = [found.start() for found in _NATIVE.finditer(text)]
    return (text[: begins[-1]], text[begins[-1] :]) if begins else (text, "")
