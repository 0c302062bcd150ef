"""The forkserver's side of a fork: a process with an imported compiler becomes one worker after another.

Python 3.8 and the standard library only: this runs in the toolchain's interpreter. See
`fuzzing.execute.forkserver` for the other side.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import socket
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional, Tuple

from fuzzing.execute.sandbox import landlock
from fuzzing.execute.sandbox.isolation import NAMESPACES, NONE
from fuzzing.execute.sandbox.kernel import LIBC, NotPermitted
from fuzzing.file_trees import discard_tree

# linux/prctl.h
_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 3, 4, 36
_SIGKILL = 9
_REAP_S = 5.0  # for killed orphans to end
MAX_REQUEST = 1 << 16
#: Descriptors passed to a worker, in order.
PASSED_DESCRIPTORS = ("in", "out", "log", "page")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - under namespaces a private file system

_Request = Tuple[Dict[str, Any], List[int]]


def fork_workers(spec: Dict[str, Any], level: str, *, may_fork: bool = True) -> Dict[str, Any]:
    """Returns in each worker, with `spec` changed to the worker's; the forking process stays in here.

    A process with more than one thread, or without `may_fork`, is not forked, since the child would have
    locks that nobody releases: it is the first worker itself, and the only one.
    """
    control = socket.socket(fileno=spec["forkserver"])
    parent = os.getpid()
    forks = may_fork and len(os.listdir("/proc/self/task")) == 1
    dumpable = LIBC.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    if forks:
        gc.freeze()  # else garbage collection in a child copies every page of the imports
        # Workers have the same user: none may trace this process or read its memory.
        LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    while True:
        found = _receive(control)
        if found is None:
            os._exit(0)
        request, descriptors = found
        if not forks or (child := os.fork()) == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        _report_exit(control, child)
        _end_orphans()
        if level == NAMESPACES:
            _empty_folder(_SHARED_MEMORY)
    if forks:
        _detach(parent, dumpable, level)
        control.send(json.dumps({"spawned": True}).encode())  # the kernel adds the pid
    control.close()
    return _apply_request(spec, request, descriptors)


def _receive(control: socket.socket) -> Optional[_Request]:
    """The next worker's settings; None when no more are needed."""
    numbers = array.array("i")
    room = socket.CMSG_SPACE(len(PASSED_DESCRIPTORS) * numbers.itemsize)
    # Else programs that a case starts would have the worker's pipes, too.
    data, more, _, _ = control.recvmsg(MAX_REQUEST, room, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return None
    for level, kind, body in more:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(body[: len(body) - len(body) % numbers.itemsize])
    return json.loads(data), list(numbers)


def _report_exit(control: socket.socket, child: int) -> None:
    """Reports how a worker ended, and keeps its pid reserved until the supervisor has ended its group."""
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    control.send(json.dumps({"exited": code}).encode())
    control.recv(1, socket.MSG_PEEK)  # the next request, or the end of the stream
    os.waitpid(child, 0)


def _end_orphans() -> None:
    """Ends the processes that a dead worker left: its orphans are children of this process now."""
    until = time.monotonic() + _REAP_S
    while time.monotonic() < until:
        try:
            with open(f"/proc/self/task/{os.listdir('/proc/self/task')[0]}/children") as file:
                orphans = [int(number) for number in file.read().split()]
        except OSError:  # a kernel without CONFIG_PROC_CHILDREN
            return
        if not orphans:
            return
        for orphan in orphans:
            with contextlib.suppress(OSError):
                os.kill(orphan, _SIGKILL)
                os.waitpid(orphan, 0)


def _detach(parent: int, dumpable: int, level: str) -> None:
    """Makes the new process a group of its own that dies with its parent."""
    if level != NONE:
        with contextlib.suppress(NotPermitted):
            landlock.scope_signals()  # again: the parent is outside now, and cannot be signalled
    os.setsid()
    LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    LIBC.prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)


def _apply_request(spec: Dict[str, Any], request: Dict[str, Any], descriptors: List[int]) -> Dict[str, Any]:
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["scratch"])
    tempfile.tempdir = None  # it may be cached
    if request["cores"]:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, request["cores"])
    own = {**spec, "options": request["options"], **dict(zip(PASSED_DESCRIPTORS, descriptors))}
    sys.stdout.flush()
    sys.stderr.flush()
    for standard in (1, 2):
        os.dup2(own["log"], standard)
    return own


def _empty_folder(folder: str) -> None:
    """Empties shared memory, where a worker's leftovers would leave less room for the next."""
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                discard_tree(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108
