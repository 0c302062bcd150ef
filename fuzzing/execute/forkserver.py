"""Fork servers: processes that have imported a compiler and fork workers.

Replacing a worker then costs a fork, some ten milliseconds, not the import of the compiler, 0.3 s (OpenVINO)
to 20 s (inductor). A fork server has the walls and limits of its workers, runs no case, has one worker at a
time, and dies with the supervisor. Its workers share memory layout and hash seed; evidence comes from fresh
interpreters (`Supervisor.fresh`).

A compiler whose import leaves threads cannot be forked: the process is then the only worker itself.
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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzzing.execute.forkserver_child import MAX_REQUEST, PASSED_DESCRIPTORS
from fuzzing.execute.scratch_folder import InnerFolder, ScratchFolder

if TYPE_CHECKING:
    from fuzzing.execute.worker_process import WorkerCommand

_EXIT_REPORT_S = 10.0  # for a forkserver to say that a worker which was killed is dead
_CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user, group
_EXIT_S = 5.0  # for a forkserver to end that is not needed any more

#: Starts the process behind one end of a pair of sockets.
Start = Callable[[socket.socket], "subprocess.Popen[bytes]"]


class ForkServer:
    """The supervisor's side of a forkserver. It starts with the first worker.

    command  what its workers are for
    path     its scratch folder, in which those of its workers are
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
        """Whether it can have another worker: its last is dead, and it lives."""
        return self._process is None or (self._control is not None and self._worker is None)

    def folder(self) -> InnerFolder:
        """A scratch folder for one worker."""
        return self._folder.make_inner()

    def spawn(self, start: Start, request: dict[str, Any], descriptors: dict[str, int]) -> ForkedWorker:
        """A worker that is, or will be when the compiler is imported. `start` is for the first.

        request  its environment, scratch folder and cores
        descriptors  by name, those of PASSED_DESCRIPTORS
        """
        if self._process is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            # The kernel adds the sender's number as it is here: in there, processes have other numbers.
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs:
                self._process = start(theirs)
        assert self._control is not None
        data = json.dumps(request).encode()
        assert len(data) <= MAX_REQUEST
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile, which its worker's end will tell
            socket.send_fds(self._control, [data], [descriptors[name] for name in PASSED_DESCRIPTORS])
        self._worker = ForkedWorker(self, self._process)
        return self._worker

    def receive(self, timeout: float) -> dict[str, Any] | None:
        """What it says within `timeout` seconds; {} if it says nothing, None if it never will any more."""
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
        """Whether the forkserver, or the launcher that it runs under, started the process `pid`."""
        assert self._process is not None
        parent = _parent(pid)
        return self._process.pid in (parent, _parent(parent))

    def mark_worker_exited(self) -> None:
        """Its worker is dead."""
        self._worker = None

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def close(self) -> None:
        """Ends it, and a worker that it may have.

        One that waits ends by itself, having seen off its workers, whose times the kernel adds to ours then.
        """
        self._close_control()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_S if self._worker is None else 0)
            end_process(self._process)
        self._folder.remove()


def end_process(process: subprocess.Popen[bytes] | ForkedWorker) -> None:
    """Ends a process and its group, if it has not ended. A launcher ends what its program has left, first."""
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_EXIT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _parent(pid: int) -> int:
    """The parent of a process; 0 if there is none, or no such process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


class ForkedWorker:
    """A worker that a forkserver has forked, or will, as `subprocess.Popen` shows a process.

    Until it is forked, or if it never is, it is the forkserver itself: what there is to wait for and to kill.
    """

    def __init__(self, forkserver: ForkServer, server: subprocess.Popen[bytes]) -> None:
        self._forkserver = forkserver
        self._server = server
        self._pid: int | None = None
        self._code: int | None = None

    @property
    def pid(self) -> int:
        """The process to look at and to kill."""
        while self._pid is None and self._listen(0):
            pass
        return self._server.pid if self._pid is None else self._pid

    def terminate(self) -> None:
        """Kills the worker. If the forkserver is the worker, its launcher kills it."""
        if self.pid == self._server.pid:
            self._server.terminate()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it lives."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; raises subprocess.TimeoutExpired.

        Without `timeout` for one that has been killed: a forkserver that does not say so is killed too.
        """
        given = _EXIT_REPORT_S if timeout is None else timeout
        until = time.monotonic() + given
        while self._code is None and self._listen(max(0.0, until - time.monotonic())):
            pass
        if self._code is None:
            try:
                # Not heard of any more: a forkserver that died, or had to be the worker itself.
                self._code = self._server.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                if timeout is not None:
                    raise
                self._server.kill()
                self._code = self._server.wait()
        return self._code

    def _listen(self, timeout: float) -> bool:
        """Takes one thing that the forkserver says; False if there was none."""
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
