"""Isolation: what a case cannot do to the machine it runs on.

A worker enters it before it imports anything of the toolchain. There are three levels, and the strongest
that the kernel allows is taken:

    namespaces  user, mount and network namespaces of its own: the whole file system is read-only but for
                the folders named, /dev holds the harmless devices and the GPUs' only, there is no network
    landlock    the same by Landlock and seccomp, where namespaces are refused (most containers); the owner
                or mode of a file of the same user can still be changed
    none        neither: cases can do whatever the user can

In both of the first, a case opens no socket of any kind, signals and traces no process but its own (where
Landlock is of version 6, Linux 6.12), and gains no privilege, be it root that started us.

`python -m fuzzing.execute.sandbox.isolation --json` tells this machine's level, and why it is not a better one.

Python 3.8 and the standard library only (law 3): this runs in the worker.
"""

from __future__ import annotations

import ctypes
import os
from typing import Callable, Dict, List, NamedTuple, Tuple

NAMESPACES, LANDLOCK, NONE = LEVELS = ("namespaces", "landlock", "none")

# linux/prctl.h, linux/capability.h
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_CAPABILITY_VERSION_3 = 0x20080522

LIBC = ctypes.CDLL(None, use_errno=True)

#: Devices that do no harm, and those by which compilers compute. Nothing else of /dev can be opened to write.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_ACCELERATORS = ("nvidia", "dri", "kfd", "accel", "dxg")


class NotPermitted(Exception):  # noqa: N818 - a statement about the kernel, not an error of ours
    """The kernel, or who configured it, does not allow this."""


class AllowedAccess(NamedTuple):
    """What stays open.

    writable  folders in which a case may write
    shared    bytes of shared memory (/dev/shm) it may fill
    """

    writable: Tuple[str, ...]
    shared: int


class SandboxStatus(NamedTuple):
    """The level that holds now, and why no better one does: level → reason."""

    level: str
    refused: Dict[str, str]


def enter(access: AllowedAccess, best: str = NAMESPACES) -> SandboxStatus:
    """Takes the strongest level allowed, `best` or below, for this process and all that it starts.

    There is no way back. The process must have one thread.
    """
    refused: Dict[str, str] = {}
    entry_functions = _entry_functions()
    for level in LEVELS[LEVELS.index(best) :]:
        if level == NONE:
            break
        try:
            entry_functions[level](access)
        except NotPermitted as error:
            refused[level] = str(error)
        else:
            return SandboxStatus(level, refused)
    return SandboxStatus(NONE, refused)


def _entry_functions() -> Dict[str, Callable[[AllowedAccess], None]]:
    from fuzzing.execute.sandbox import landlock, namespaces, seccomp

    def by_namespaces(access: AllowedAccess) -> None:
        namespaces.enter(access)
        _drop_privileges()
        for extra in (landlock.scope_signals, seccomp.deny_sockets):  # beyond what makes the level
            try:
                extra()
            except NotPermitted:
                continue

    def by_landlock(access: AllowedAccess) -> None:
        _drop_privileges()
        landlock.enter(access)
        seccomp.deny_sockets()

    return {NAMESPACES: by_namespaces, LANDLOCK: by_landlock}


def no_new_privileges() -> None:
    """No setuid program, file capability or the like gives this process more than it has."""
    check_call(LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def _drop_privileges() -> None:
    """For ever. Under Landlock, too, root's capabilities would let a case read any process's environment."""
    no_new_privileges()
    capability = 0
    while LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:  # fails after the last, or if we have none
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    check_call(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def check_call(result: int, what: str) -> int:
    """`result` of a call into the C library; raises Refused with `what` and the reason if it is negative."""
    if result < 0:
        raise NotPermitted(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def writable_devices() -> List[str]:
    """The device nodes, and folders of them, that a case may write to."""
    try:
        names = sorted(os.listdir("/dev"))
    except OSError:
        return []
    return [f"/dev/{name}" for name in names if name in _DEVICES or name.startswith(_ACCELERATORS)]


def main(argv: List[str]) -> int:
    """Prints the level that this machine allows, as JSON; the exit code."""
    import json
    import sys
    import tempfile

    if argv != ["--json"]:
        sys.stderr.write("usage: python -m fuzzing.execute.sandbox.isolation --json\n")
        return 2
    folder = tempfile.mkdtemp(prefix="assay-isolation-")
    pid = os.fork()  # the folder must be removed by one who still can
    if pid == 0:
        entered = enter(AllowedAccess((folder,), 1 << 20))
        sys.stdout.write(json.dumps(entered._asdict()) + "\n")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    os.rmdir(folder)  # noqa: PTH106
    return int(status != 0)


if __name__ == "__main__":
    from sys import argv

    from fuzzing.execute.sandbox import isolation  # noqa: PLW0406 - not this copy: its exceptions are others

    raise SystemExit(isolation.main(argv[1:]))
