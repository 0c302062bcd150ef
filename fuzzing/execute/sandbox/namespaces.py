"""Namespaces: a user, a mount and a network namespace of one's own, entered without any other program.

The mounts are those that were there, made read-only; so a toolchain is found where it lies, wherever
that is. Needs Linux 5.12 (mount_setattr) and leave to make user namespaces. About a millisecond.
"""

from __future__ import annotations

import ctypes
import os

from fuzzing.execute.sandbox.isolation import LIBC, AllowedAccess, NotPermitted, check_call, writable_devices

# linux/sched.h
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
# linux/mount.h
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_SYS_MOUNT_SETATTR = 442  # of every architecture: numbers from 403 on are common
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000  # linux/fcntl.h
_SHARED = b"/dev/shm"


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def enter(access: AllowedAccess) -> None:
    """Enters them; raises isolation.Refused, after which this process may be in half of them.

    That half harms nobody: it can still be confined by Landlock, and does without a network already. Who
    owns namespaces has all capabilities in them, which the caller must drop, or the walls can be moved.
    """
    uid, gid = os.getuid(), os.getgid()
    check_call(LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET), "unshare")
    _map_ids(uid, gid)
    kept = [os.fsencode(name) for name in writable_devices()]
    open_folders = [os.fsencode(os.path.realpath(name)) for name in access.writable]
    for path in (*kept, *open_folders):
        check_call(LIBC.mount(path, path, None, _MS_BIND | _MS_REC, None), f"binding {os.fsdecode(path)}")
    forbidden = _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV
    _set_mount_attributes(b"/", _MountAttr(forbidden, 0, _MS_PRIVATE, 0), recursive=True)
    for path in kept:
        _set_mount_attributes(path, _MountAttr(0, _ATTR_NODEV, 0, 0), recursive=False)
    for path in open_folders:
        _set_mount_attributes(path, _MountAttr(0, _ATTR_RDONLY, 0, 0), recursive=False)
    _mount_shared(access.shared)
    _reenter_working_directory()


def _map_ids(uid: int, gid: int) -> None:
    """Everyone keeps their own number: files look as they did before."""
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as error:
        raise NotPermitted(f"writing /proc/self/{name}: {error.strerror}") from None


def _set_mount_attributes(path: bytes, attributes: _MountAttr, *, recursive: bool) -> None:
    check_call(
        LIBC.syscall(
            _SYS_MOUNT_SETATTR,
            _AT_FDCWD,
            path,
            _AT_RECURSIVE if recursive else 0,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        ),
        f"mount_setattr {os.fsdecode(path)}",
    )


def _mount_shared(size: int) -> None:
    """Shared memory of its own. Where it is refused, it has none, and that is safe too."""
    if os.path.isdir(_SHARED):  # noqa: PTH112
        LIBC.mount(b"tmpfs", _SHARED, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777,size=%d" % size)


def _reenter_working_directory() -> None:
    """The working directory is still that of the mounts we left, which can be written."""
    try:
        os.chdir(os.getcwd())  # noqa: PTH109
    except OSError:  # it was removed, or cannot be entered any more
        os.chdir("/")
