"""Landlock: restricts files to some folders, and signals to the process's own.

It needs no privilege, and most containers allow it. Linux 5.13 and later; each version handles more rights
(Documentation/userspace-api/landlock.rst), and those of the running version are used.
"""

from __future__ import annotations

import ctypes
import os
import stat

from fuzzing.execute.sandbox.kernel import (
    LIBC,
    AllowedAccess,
    NotPermitted,
    check_call,
    system_paths,
    writable_devices,
)

_SYS_CREATE_RULESET, _SYS_ADD_RULE, _SYS_RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
# linux/landlock.h
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 13, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_MAKE_AND_REMOVE = 0b1111_1111_1 << 4  # REMOVE_DIR .. MAKE_SYM
_NET_BIND_TCP, _NET_CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1, 2
_SHARED = "/dev/shm"  # noqa: S108 - the folder of POSIX semaphores and shared memory


class _Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # implied by _pack_; required by Python 3.14
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Landlock's version in the running kernel; raises NotPermitted where there is none."""
    return check_call(LIBC.syscall(_SYS_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION), "landlock")


def enter(access: AllowedAccess) -> None:
    """Confines this process, which must have no_new_privs set; raises NotPermitted."""
    known = version()
    files = _READ | _WRITE_FILE | _MAKE_AND_REMOVE
    files |= (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    network = _NET_BIND_TCP | _NET_CONNECT_TCP if known >= 4 else 0
    ruleset = _create(_Ruleset(files, network, _scoped(known)))
    try:
        for path in (*writable_devices(), *access.writable, _SHARED):
            if os.path.exists(path):  # noqa: PTH110
                _allow(ruleset, path, files)
        for path in (*system_paths(), *access.readable, "/proc"):
            if os.path.exists(path):  # noqa: PTH110
                _allow(ruleset, path, _READ)
        _restrict(ruleset)
    finally:
        os.close(ruleset)


def scope_signals() -> None:
    """Confines this process's signals only; raises NotPermitted, also if Landlock is too old.

    Called again in a child, it protects the parent. A rule set that does not mention moving files between
    folders forbids it, so it is allowed explicitly.
    """
    known = version()
    if known < 6:
        raise NotPermitted("landlock: this version scopes no signals")
    ruleset = _create(_Ruleset(_REFER, 0, _scoped(known)))
    try:
        _allow(ruleset, "/", _REFER)
        _restrict(ruleset)
    finally:
        os.close(ruleset)


def _scoped(known: int) -> int:
    return _SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL if known >= 6 else 0


def _create(ruleset: _Ruleset) -> int:
    # An older kernel takes the longer structure if the fields it does not know are zero.
    size = ctypes.sizeof(ruleset)
    return check_call(LIBC.syscall(_SYS_CREATE_RULESET, ctypes.byref(ruleset), size, 0), "landlock ruleset")


def _allow(ruleset: int, path: str, files: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            files &= _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE  # the rights that apply to a single file
        rule = _PathBeneath(files, parent)
        check_call(
            LIBC.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0),
            f"allowing {path}",
        )
    finally:
        os.close(parent)


def _restrict(ruleset: int) -> None:
    check_call(LIBC.syscall(_SYS_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
