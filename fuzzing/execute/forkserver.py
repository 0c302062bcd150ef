"""Fork servers: processes that have imported a compiler and fork workers.

Replacing a worker then costs a fork, some ten milliseconds, instead of the compiler's import, 0.3 s
(OpenVINO) to 20 s (inductor). A fork server has the sandbox and limits of its workers, runs no case, has one
worker at a time, and ends with the supervisor. Its workers share memory layout and hash seed, so the repeats
of a failure come from several interpreters (`Supervisor.interpreter`).

A compiler whose import starts threads cannot be forked: that process is then the only worker itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from fuzzing.execute.forkserver_child import MAX_REQUEST, PASSED_DESCRIPTORS
from fuzzing.execute.sandbox import cgroup
from fuzzing.execute.sandbox.launch import totals_group
from fuzzing.execute.scratch_folder import InnerFolder, ScratchFolder
from fuzzing.execute.worker_command import WorkerCommand

_EXIT_REPORT_S = 10.0  # for a forkserver's report that a killed worker is dead
_CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user, group
_EXIT_S = 5.0  # for an unneeded forkserver to exit

#: Starts the process behind one end of a socket pair.
Start = Callable[[socket.socket], "subprocess.Popen[bytes]"]


class ForkServer:
    """The supervisor's side of a forkserver, which starts with the first worker.

    command  starts its workers
    path     its scratch folder, which contains those of its workers
    """

    def __init__(self, command: WorkerCommand) -> None:
        self.command = command
        self._folder = ScratchFolder()
        self.path = self._folder.path
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._worker: ForkedWorker | None = None

    @property
    def usable(self) -> bool:
        """Whether it can have another worker: its last is dead, and it is alive."""
        return self._process is None or (self._control is not None and self._worker is None)

    def folder(self) -> InnerFolder:
        """A scratch folder for one worker."""
        return self._folder.make_inner()

    def spawn(self, start: Start, request: dict[str, Any], descriptors: dict[str, int]) -> ForkedWorker:
        """A worker that exists now or once the compiler is imported. `start` is for the first.

        request      its environment, scratch folder, cores and options of the backend
        descriptors  by name, those of PASSED_DESCRIPTORS
        """
        if self._process is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            # The kernel adds the sender's pid as seen here: inside the namespace, pids differ.
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs:
                self._process = start(theirs)
        assert self._control is not None
        data = json.dumps(request).encode()
        assert len(data) <= MAX_REQUEST
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile, which its worker's exit will show
            socket.send_fds(self._control, [data], [descriptors[name] for name in PASSED_DESCRIPTORS])
        self._worker = ForkedWorker(self, self._process)
        return self._worker

    def receive(self, timeout: float) -> dict[str, Any] | None:
        """A message received within `timeout` seconds; {} if there was none, None if it has closed the
        socket.
        """
        if self._control is None:
            return None
        if not select.select([self._control], [], [], timeout)[0]:
            return {}
        try:
            data, more, _, _ = self._control.recvmsg(MAX_REQUEST, socket.CMSG_SPACE(_CREDENTIALS.size))
            message = json.loads(data)
        except (OSError, ValueError):
            message = None
        if not isinstance(message, dict):
            self._close_control()
            return None
        senders = [_CREDENTIALS.unpack(body)[0] for _, kind, body in more if kind == socket.SCM_CREDENTIALS]
        return {**message, "sender": senders[0] if senders else 0}

    def is_ancestor_of(self, pid: int) -> bool:
        """Whether the forkserver, or its launcher, started the process `pid`."""
        assert self._process is not None
        parent = _parent(pid)
        return self._process.pid in (parent, _parent(parent))

    def mark_worker_exited(self) -> None:
        """Records that its worker is dead."""
        self._worker = None

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def close(self) -> None:
        """Ends it, and its worker if there is one.

        An idle one ends by itself after reaping its workers, so that the kernel adds their times to the
        supervisor's.
        """
        self._close_control()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_S if self._worker is None else 0)
            end_process(self._process)
        self._folder.remove()


class ForkServerPool:
    """Forkservers of one toolchain, by number, that could have another worker; for one supervisor or several.

    Those of different numbers share neither hash seed nor memory layout.
    """

    def __init__(self) -> None:
        self._idle: defaultdict[int, list[ForkServer]] = defaultdict(list)
        self._closed = False

    def take(self, number: int, command: WorkerCommand) -> ForkServer:
        """An idle one of this number, or a new one, which `command` will start."""
        idle = self._idle[number]
        return idle.pop() if idle else ForkServer(command)

    def give_back(self, number: int, forkserver: ForkServer) -> None:
        """Keeps one whose worker is dead for the next, if it can have one; else ends it."""
        if forkserver.usable and not self._closed:
            self._idle[number].append(forkserver)
        else:
            forkserver.close()

    def close(self) -> None:
        """Ends those that are idle, and the others once they are given back."""
        self._closed = True
        for forkserver in chain.from_iterable(self._idle.values()):
            forkserver.close()
        self._idle.clear()


def end_process(process: subprocess.Popen[bytes] | ForkedWorker) -> None:
    """Ends a process and its groups if it is alive. A launcher first ends the processes its program left."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if (group := totals_group()) is not None:
        cgroup.remove(group, process.pid)


def _parent(pid: int) -> int:
    """The pid of a process's parent; 0 if there is none, or no such process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


class ForkedWorker:
    """A worker forked by a forkserver, now or later, with the interface of `subprocess.Popen`.

    Until it is forked, or if it never is, waiting and killing apply to the forkserver.
    """

    def __init__(self, forkserver: ForkServer, server: subprocess.Popen[bytes]) -> None:
        self._forkserver = forkserver
        self._server = server
        self._pid: int | None = None
        self._code: int | None = None

    @property
    def pid(self) -> int:
        """The process to inspect and to kill."""
        while self._pid is None and self._listen(0):
            pass
        return self._server.pid if self._pid is None else self._pid

    @property
    def is_forked(self) -> bool:
        """Whether it is another process than the forkserver."""
        return self.pid != self._server.pid

    def terminate(self) -> None:
        """Kills the worker. If the forkserver is the worker, its launcher kills it."""
        if self.is_forked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        else:
            self._server.terminate()

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it lives."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; raises subprocess.TimeoutExpired.

        Without `timeout` for a killed worker: a forkserver that does not report its exit is killed too.
        """
        given = _EXIT_REPORT_S if timeout is None else timeout
        until = time.monotonic() + given
        while self._code is None and self._listen(max(0.0, until - time.monotonic())):
            pass
        if self._code is None:
            try:
                # No report: the forkserver died, or is the worker itself.
                self._code = self._server.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                if timeout is not None:
                    raise
                self._server.kill()
                self._code = self._server.wait()
        return self._code

    def _listen(self, timeout: float) -> bool:
        """Processes one message of the forkserver; False if there was none."""
        message = self._forkserver.receive(timeout)
        if not message:
            return False
        sender, exited = message["sender"], message.get("exited")
        if message.get("spawned") and sender > 1 and self._forkserver.is_ancestor_of(sender):
            self._pid = sender
        elif isinstance(exited, int) and self._pid is not None:
            self._code = exited
            self._forkserver.mark_worker_exited()
        else:
            self._server.kill()
        return True
