"""Enters private user, mount, network and process namespaces, without any other program.

The new root holds only the folders of `AllowedAccess` and the system's libraries, at their usual paths. Needs
Linux 5.12 (mount_setattr) and permission to make user namespaces. Takes a few milliseconds.
"""

# Paths are handed to system calls as they are: pathlib adds nothing.
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH112, PTH114, PTH115, PTH118, PTH120, PTH211

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
from typing import Iterable, List, Tuple

from fuzzing.execute.sandbox.kernel import (
    LIBC,
    AllowedAccess,
    NotPermitted,
    check_call,
    drop_privileges,
    system_paths,
    writable_devices,
)

# linux/sched.h
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
# linux/mount.h
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_SYS_MOUNT_SETATTR, _SYS_PIDFD_OPEN = 442, 434  # on every architecture
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000  # linux/fcntl.h
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_SHARED = "/dev/shm"  # noqa: S108 - the folder of POSIX semaphores and shared memory
_BASE = "/tmp"  # noqa: S108 - exists everywhere; the new root is mounted on it, in the private namespace only
_ROOT_BYTES = 16 << 20  # of the new root itself, which holds mount points and links only
_MAX_LINKS = 40  # followed in one path; the kernel's limit


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def enter(access: AllowedAccess) -> None:
    """Enters the namespaces; raises NotPermitted, after which this process may be in some of them.

    That is harmless: it can still be confined by Landlock. The owner of namespaces has all capabilities in
    them, which the caller must drop, since they could undo the mounts.

    This process keeps its pid. Its children are in the new process namespace, which ends, with all its
    processes, when this process ends.
    """
    uid, gid, folder = os.getuid(), os.getgid(), os.getcwd()
    machine = os.uname().machine
    if machine not in _SYS_PIVOT_ROOT:
        raise NotPermitted(f"pivot_root: its number on {machine} is not known")
    check_call(LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET), "unshare")
    _map_ids(uid, gid)
    check_call(LIBC.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "making mounts private")
    _Root(access).enter(_SYS_PIVOT_ROOT[machine])
    try:
        os.chdir(folder)
    except OSError:  # it is not among the folders allowed
        os.chdir("/")
    _separate_processes()


class _Root:
    """The new root during its construction, on _BASE."""

    def __init__(self, access: AllowedAccess) -> None:
        self._access = access
        self._bound: List[str] = []

    def enter(self, pivot_root: int) -> None:
        """Builds and enters it; anything else becomes invisible to this process for good."""
        devices = [os.path.realpath(path) for path in writable_devices()]
        writable = [os.path.realpath(folder) for folder in self._access.writable]
        readable = [path for path in (*system_paths(), *self._access.readable) if os.path.lexists(path)]
        # Sources are opened first: the new root hides everything below _BASE.
        sources = self._open([*readable, "/proc", *devices, *writable])
        check_call(
            LIBC.mount(b"assay", os.fsencode(_BASE), b"tmpfs", _MS_NOSUID, b"mode=755,size=%d" % _ROOT_BYTES),
            "mounting a new root",
        )
        for path, descriptor in sources:
            self._bind(path, descriptor, nested=path in writable)
        self._link_devices()
        os.makedirs(f"{_BASE}{_SHARED}", exist_ok=True)
        _set_attributes(_BASE, _MountAttr(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0), recursive=True)
        for path in devices:
            _set_attributes(f"{_BASE}{path}", _MountAttr(0, _ATTR_NODEV, 0, 0), recursive=False)
        for path in writable:
            _set_attributes(f"{_BASE}{path}", _MountAttr(0, _ATTR_RDONLY, 0, 0), recursive=False)
        # Private shared memory. If that is refused there is none, which is safe too.
        LIBC.mount(
            b"tmpfs",
            os.fsencode(f"{_BASE}{_SHARED}"),
            b"tmpfs",
            _MS_NOSUID | _MS_NODEV,
            b"mode=1777,size=%d" % self._access.shared,
        )
        os.chdir(_BASE)
        check_call(LIBC.syscall(pivot_root, b".", b"."), "pivot_root")
        check_call(LIBC.umount2(b".", _MNT_DETACH), "leaving the old root")
        os.chdir("/")

    def _open(self, paths: Iterable[str]) -> List[Tuple[str, int]]:
        """Each path, its links followed, with a descriptor; links are recorded for the new root."""
        self._links: List[Tuple[str, str]] = []
        found = {}
        for path in paths:
            real = self._follow(os.path.abspath(path))
            if real not in found and os.path.exists(real):
                found[real] = os.open(real, os.O_PATH | os.O_CLOEXEC)
        return list(found.items())

    def _follow(self, path: str) -> str:
        """The path without links; each link on the way is recorded."""
        done, left = "/", [name for name in path.split("/") if name]
        for _ in range(_MAX_LINKS * 64):
            if not left:
                break
            here = os.path.join(done, left.pop(0))
            if os.path.islink(here):
                target = os.readlink(here)
                self._links.append((here, target))
                joined = os.path.normpath(os.path.join(done, target))
                done, left = "/", [name for name in joined.split("/") if name] + left
            else:
                done = here
        return done

    def _bind(self, path: str, descriptor: int, *, nested: bool) -> None:
        place = f"{_BASE}{path}"
        try:
            if not nested and any(path == one or path.startswith(f"{one}/") for one in self._bound):
                return  # it is in there already
            if not os.path.lexists(place):
                if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                    os.makedirs(place)
                else:
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            source = b"/proc/self/fd/%d" % descriptor
            check_call(
                LIBC.mount(source, os.fsencode(place), None, _MS_BIND | _MS_REC, None), f"binding {path}"
            )
            self._bound.append(path)
        except OSError as error:
            raise NotPermitted(f"binding {path}: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def _link_devices(self) -> None:
        links = [("/dev/fd", "/proc/self/fd")]
        links += [(f"/dev/std{name}", f"/proc/self/fd/{n}") for n, name in enumerate(("in", "out", "err"))]
        for path, target in (*self._links, *links):
            place = f"{_BASE}{path}"
            with contextlib.suppress(OSError):  # it exists, in a bound folder
                os.makedirs(os.path.dirname(place), exist_ok=True)
                os.symlink(target, place)


def _map_ids(uid: int, gid: int) -> None:
    """Maps every id to itself, so that owners of files look the same."""
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


def _set_attributes(path: str, attributes: _MountAttr, *, recursive: bool) -> None:
    check_call(
        LIBC.syscall(
            _SYS_MOUNT_SETATTR,
            _AT_FDCWD,
            os.fsencode(path),
            _AT_RECURSIVE if recursive else 0,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        ),
        f"mount_setattr {path}",
    )


def _separate_processes() -> None:
    """A process namespace for the children of this process, and its first process, which only waits.

    The kernel kills all others in it when the first one ends. The first one ends when this process ends,
    whose pidfd it polls: once this process's signals are confined, PR_SET_PDEATHSIG has no effect.
    """
    parent = check_call(LIBC.syscall(_SYS_PIDFD_OPEN, os.getpid(), 0), "pidfd_open")
    check_call(LIBC.unshare(_CLONE_NEWPID), "unshare processes")
    ready, write = os.pipe()
    if os.fork() == 0:
        _run_init(parent, write)
    os.close(parent)
    os.close(write)
    started = os.read(ready, 1)
    os.close(ready)
    if not started:
        raise NotPermitted("the first process of a namespace did not start")


def _run_init(parent: int, write: int) -> None:
    try:
        # A private /proc, where the kernel allows it: not where a container hides parts of /proc.
        flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_RDONLY
        LIBC.mount(b"proc", b"/proc", b"proc", flags, None)
        LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # not traceable
        drop_privileges()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans leave no zombies
        end = select.poll()
        end.register(parent, select.POLLIN)
        os.write(write, b"x")  # fails if the parent has died meanwhile
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor != parent:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        end.poll()
    finally:
        os._exit(1)
