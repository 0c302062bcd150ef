"""What all levels of isolation use: calls of the kernel, and what a case may access.

Python 3.8 and the standard library only.
"""

from __future__ import annotations

import ctypes
import os
from typing import List, NamedTuple, Tuple

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
