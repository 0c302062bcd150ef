"""Starts a program in the sandbox: `python -I -S launcher.py SPEC`, SPEC a JSON object.

It runs under Assay's own interpreter, enters the sandbox, sets the limits, and only then starts the program.
So nothing of a toolchain runs outside: neither its interpreter nor its start-up code (`.pth` files,
sitecustomize). `fuzzing.execute.sandbox.launch.sandboxed_command` makes the command line.

    command       the program and its arguments
    isolation     the best level to take, of isolation.LEVELS
    required      the lowest level accepted; below it the launcher exits with NOT_CONFINED
    writable      folders in which the program may write
    readable      files and folders that it may read, in addition to those and the system's
    cores         processors it may use; [] for all
    memory_bytes  private writable memory of each process; null for no limit
    file_bytes    largest file
    cgroup        the control group that gets one of its own for the program; null for none
    total_bytes   memory of all its processes together, applied by the control group; null for no limit

The variable ASSAY_SANDBOX_LEVEL holds the level taken. The launcher stays until the program ends, passes
SIGABRT on to it, kills it on SIGTERM, kills the processes that it leaves, and exits with its code or signal.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

#: Exit codes: the required isolation is unavailable; the program cannot be started (as in a shell).
NOT_CONFINED, NOT_FOUND = 125, 127
LEVEL_VARIABLE = "ASSAY_SANDBOX_LEVEL"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h
#: Processes and threads of one program. Compilers start a thread pool for each of their libraries, with as
#: many threads as processors. The kernel does not apply it to root.
_MAX_TASKS = 4096
_REAP_S = 5.0  # for killed orphans to end


def main(argument: str) -> None:
    """Runs the program that `argument` describes, and ends the way it ends."""
    spec = json.loads(argument)
    _import_package()
    from fuzzing.execute.sandbox import cgroup, isolation, kernel, landlock

    if spec["cores"]:
        with contextlib.suppress(OSError):  # some of them may be gone
            os.sched_setaffinity(0, spec["cores"])
    if spec["cgroup"] is not None:
        try:
            cgroup.enter(spec["cgroup"], spec["total_bytes"], _MAX_TASKS)
        except kernel.NotPermitted as error:
            sys.stderr.write(f"the limits of all processes together cannot be set: {error}\n")
            sys.exit(NOT_CONFINED)
    access = kernel.AllowedAccess(tuple(spec["writable"]), spec["file_bytes"], tuple(spec["readable"]))
    level, refused = isolation.enter(access, spec["isolation"])
    if isolation.LEVELS.index(level) > isolation.LEVELS.index(spec["required"]):
        why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        sys.stderr.write(f"isolation {spec['required']} is required, this machine allows {level} ({why})\n")
        sys.exit(NOT_CONFINED)
    prctl = kernel.LIBC.prctl
    # No orphan survives a kill -9 of the parent. Not earlier: a change of privileges clears it.
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # the program is of the same user
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    child = 0

    def forward(number: int, _: object) -> None:
        if child == 0:
            os._exit(128 + number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGABRT if number == signal.SIGABRT else signal.SIGKILL)

    for number in (signal.SIGABRT, signal.SIGTERM):
        signal.signal(number, forward)
    child = os.fork()
    if child == 0:
        if level != isolation.NONE:
            with contextlib.suppress(kernel.NotPermitted):
                landlock.scope_signals()  # again: this keeps the parent from being signalled
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _set_limits(spec, own_count=level == isolation.NAMESPACES)
        _become(spec["command"], level)
    os.closerange(3, 1 << 16)  # the program's pipes must close with the program
    _, status = os.waitpid(child, 0)
    _end_orphans()
    _end_alike(status)


def _become(command: list[str], level: str) -> None:
    os.environ[LEVEL_VARIABLE] = level
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    os._exit(NOT_FOUND)


def _end_orphans() -> None:
    """Ends the processes that the program left: they are children of this process, the subreaper.

    Finds none in a process namespace, where they end with the namespace.
    """
    until = time.monotonic() + _REAP_S
    while time.monotonic() < until:
        try:
            orphans = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:  # a kernel without CONFIG_PROC_CHILDREN
            return
        if not orphans:
            return
        for orphan in map(int, orphans):
            with contextlib.suppress(OSError):
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)


def _end_alike(status: int) -> None:
    """Ends this process like the program: with its exit code, or by its signal."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _set_limits(spec: dict[str, Any], *, own_count: bool) -> None:
    """Limits of the program; `own_count` if the kernel counts its processes apart from the user's others."""
    if own_count:
        resource.setrlimit(resource.RLIMIT_NPROC, (_MAX_TASKS, _MAX_TASKS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (spec["file_bytes"], spec["file_bytes"]))
    if spec["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (spec["memory_bytes"], spec["memory_bytes"]))


def _import_package() -> None:
    """Makes the package `fuzzing` importable: without `site` it is on no path."""
    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        "fuzzing", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzzing"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main(sys.argv[1])
