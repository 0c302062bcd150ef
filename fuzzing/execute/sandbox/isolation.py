"""Isolation: limits of what a case can do to its machine.

There are three levels. The strongest that the kernel allows is taken:

    namespaces  user, mount, process and network namespaces of its own: the file system holds the system's
                libraries and the folders named, /dev the harmless devices and the GPUs, there is no network
    landlock    the same by Landlock and seccomp, where namespaces are refused (most containers); names and
                sizes of files can still be seen, and the owner or mode of a file of the same user changed
    none        no limit: cases can do whatever the user can

At the first two levels a case connects no socket, signals and traces only its own processes (Landlock version
6, Linux 6.12), and gains no privilege, even if root started it.

`python -m fuzzing.execute.sandbox.isolation --json` prints this machine's level, and why no better one holds.

Python 3.8 and the standard library only.
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

#: Harmless devices, and those that compilers compute on. Nothing else of /dev can be opened for writing.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_ACCELERATORS = ("nvidia", "dri", "kfd", "accel", "dxg")


#: What every program may read if it exists: programs and libraries, their configuration, the machine's
#: processors and GPUs. Not the rest of /etc, which holds keys and passwords.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/opt/cuda", "/opt/nvidia", "/opt/rocm", "/opt/intel", "/run/opengl-driver"),
    *("/sys/devices", "/sys/class", "/sys/bus", "/sys/dev", "/sys/module", "/sys/fs/cgroup"),
    *("/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/hugepages"),
)
_SYSTEM_CONFIGURATION = (
    *(
        "alternatives",
        "group",
        "hosts",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "mime.types",
    ),
    *("nsswitch.conf", "OpenCL", "passwd", "protocols", "services", "ssl/certs", "timezone", "vulkan"),
)


class NotPermitted(Exception):  # noqa: N818 - a statement about the kernel, not an error of Assay
    """The kernel, or its configuration, does not allow this."""


class AllowedAccess(NamedTuple):
    """What stays accessible.

    writable  folders in which a case may write
    shared    bytes of shared memory (/dev/shm) it may fill
    readable  files and folders that it may read, in addition to those and `system_paths`
    """

    writable: Tuple[str, ...]
    shared: int
    readable: Tuple[str, ...] = ()


class SandboxStatus(NamedTuple):
    """The current level, and why no better one holds: level → reason."""

    level: str
    refused: Dict[str, str]


def enter(access: AllowedAccess, best: str = NAMESPACES) -> SandboxStatus:
    """Enters the strongest level allowed, `best` or below, for this process and all its children.

    Irreversible. The process must have one thread. At the level `namespaces` its children are in a process
    namespace of their own.
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
        drop_privileges()
        for extra in (landlock.scope_signals, seccomp.deny_sockets):  # beyond what defines the level
            try:
                extra()
            except NotPermitted:
                continue

    def by_landlock(access: AllowedAccess) -> None:
        drop_privileges()
        landlock.enter(access)
        seccomp.deny_sockets()

    return {NAMESPACES: by_namespaces, LANDLOCK: by_landlock}


def no_new_privileges() -> None:
    """Prevents setuid programs, file capabilities and the like from adding privileges."""
    check_call(LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def drop_privileges() -> None:
    """Drops all capabilities for good. Under Landlock, root's would show any process's environment."""
    no_new_privileges()
    capability = 0
    # fails after the last, or if there are none
    while LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    check_call(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def check_call(result: int, what: str) -> int:
    """Returns the `result` of a C call; raises NotPermitted with `what` and the reason if it is negative."""
    if result < 0:
        raise NotPermitted(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def system_paths() -> List[str]:
    """The system's files and folders that every program may read."""
    paths = [*_SYSTEM, *(f"/etc/{name}" for name in _SYSTEM_CONFIGURATION)]
    return [path for path in paths if os.path.lexists(path)]


def writable_devices() -> List[str]:
    """The device nodes, and folders of them, that a case may write to."""
    try:
        names = sorted(os.listdir("/dev"))
    except OSError:
        return []
    return [f"/dev/{name}" for name in names if name in _DEVICES or name.startswith(_ACCELERATORS)]


def main(argv: List[str]) -> int:
    """Prints the level that this machine allows, as JSON; returns the exit code."""
    import json
    import sys
    import tempfile

    if argv != ["--json"]:
        sys.stderr.write("usage: python -m fuzzing.execute.sandbox.isolation --json\n")
        return 2
    folder = tempfile.mkdtemp(prefix="assay-isolation-")
    pid = os.fork()  # this process, which is not sandboxed, removes the folder
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
