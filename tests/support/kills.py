"""Kills a piece of work by SIGKILL at chosen steps: each change of the file system is one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

#: Audit events (Python's documentation, "Audit events table") of what changes files or starts programs.
_EVENTS = frozenset(
    {"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "subprocess.Popen"}
)


def count_steps(work: Callable[[], object]) -> int:
    """How many steps a piece of work takes, done in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        steps = [0]
        _listen(lambda: steps.__setitem__(0, steps[0] + 1))
        code = _do(work)
        os.write(write, str(steps[0]).encode())
        os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        total = int(pipe.read() or 0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return total


def spread(total: int, points: int) -> list[int]:
    """So many steps of `total`, evenly spread; the last ones are where a result is put in place."""
    return sorted({max(1, total * number // points) for number in range(1, points)} | {total - 1})


def kill_at(step: int, work: Callable[[], object]) -> None:
    """Does a piece of work in a child process that dies before its step of this number."""
    child = os.fork()
    if child == 0:
        left = [step]

        def tick() -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        _listen(tick)
        os._exit(_do(work))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def _listen(tick: Callable[[], None]) -> None:
    own = os.getpid()

    def hook(event: str, _arguments: object) -> None:
        if event in _EVENTS and os.getpid() == own:
            tick()

    sys.addaudithook(hook)


def _do(work: Callable[[], object]) -> int:
    """0 if the work ends, 1 after any error; the child must not go on with the caller's tests."""
    code = 1
    with suppress(BaseException):
        work()
        code = 0
    return code
