"""Limits of all processes of a program together, by a control group (cgroup v2), where one is delegated.

A group that holds processes cannot limit parts of itself. So the service must be in a subgroup of the group
that it was given: `Delegate=` and `DelegateSubgroup=` of systemd.resource-control(5). systemd marks that
group with the extended attribute `user.delegate`. Each sandbox gets a group beside the service's.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from fuzzing.execute.sandbox.kernel import NotPermitted

_CONTROLLERS = ("memory", "pids")
_MARK = "user.delegate"
_PREFIX = "assay-"  # of the names of our groups; the launcher's pid follows
_REMOVE_S, _PAUSE_S = 2.0, 0.01  # until killed processes have left a group


def delegated_group(process: Path = Path("/proc/self")) -> str:
    """The group below which a process may make groups. Raises NotPermitted with the reason if there is none.

    process  its folder in /proc
    """
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8").splitlines()
        mounts = (process / "mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise NotPermitted(f"{error.filename}: {error.strerror}") from None
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    # mount id, parent, device, root, mount point, …, "-", type: proc(5)
    places = [line.split() for line in mounts if " - cgroup2 " in line]
    if own is None or not places:
        raise NotPermitted("cgroup v2 is not mounted")
    root, mount = places[0][3], places[0][4]
    if own == root or own.startswith("/../"):  # outside of what its namespace shows
        raise NotPermitted("this process is in the root of its control groups")
    group = Path(mount, os.path.relpath(own, root)).parent
    try:
        given = os.getxattr(group, _MARK)
        available = (group / "cgroup.controllers").read_text(encoding="utf-8").split()
    except OSError as error:
        raise NotPermitted(f"{group} is not delegated: {error.strerror}") from None
    missing = [name for name in _CONTROLLERS if name not in available]
    if given != b"1" or missing or not os.access(group / "cgroup.procs", os.W_OK):
        raise NotPermitted(f"{group} is not delegated with {' and '.join(missing or _CONTROLLERS)}")
    return str(group)


def enter(parent: str, memory_bytes: int | None, tasks: int) -> None:
    """Moves this process into a new group of `parent`; raises NotPermitted.

    memory_bytes  of all its processes, files in memory included; no limit if None. Nothing is swapped
    tasks         processes and threads
    """
    _remove_old(Path(parent))
    group = _group(parent, os.getpid())
    try:
        _write(Path(parent) / "cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS))
        group.mkdir()
        _write(group / "pids.max", str(tasks))
        if memory_bytes is not None:
            _write(group / "memory.max", str(memory_bytes))
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                _write(group / "memory.swap.max", "0")
        _write(group / "cgroup.procs", "0")
    except OSError as error:
        raise NotPermitted(f"the control group {error.filename}: {error.strerror}") from None


def remove(parent: str, pid: int) -> None:
    """Kills what is left in the group of the launcher `pid`, and removes the group if it has one."""
    group = _group(parent, pid)
    kill = group / "cgroup.kill"
    if kill.exists():  # since Linux 5.14; the launcher and the process namespace have killed what they could
        _write(kill, "1")
    until = time.monotonic() + _REMOVE_S
    while group.is_dir() and time.monotonic() < until:
        try:
            group.rmdir()
        except OSError:  # the kernel has not reaped them all
            time.sleep(_PAUSE_S)


def _remove_old(parent: Path) -> None:
    """Removes the groups of launchers that have ended; the kernel keeps those that hold processes."""
    for group in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(_PREFIX)).exists():
            with contextlib.suppress(OSError):
                group.rmdir()


def _group(parent: str, pid: int) -> Path:
    return Path(parent, f"{_PREFIX}{pid}")


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")
