"""GPU slots: one for each CUDA device, held by one worker at a time.

Two programs on one device disturb each other's memory and clocks, and a device failure kills both. A slot is
a lock file shared by all runs on this machine; the kernel releases it when its holder dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fuzzing.errors import ToolchainError

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
CUDA_DEVICE = "CUDA"
_WAIT_S = 3600.0  # for a device that another run holds: a shard seldom takes longer
_POLL_S = 0.5
_QUERY_S = 30.0  # for nvidia-smi, which wakes sleeping devices
#: `nvidia-smi -L`: "GPU 0: NVIDIA H200 (UUID: GPU-…)", and below it "  MIG 1g.18gb  Device 0: (UUID: MIG-…)".
_LISTED = re.compile(r"^(GPU|\s+MIG)\b.*\(UUID: ([\w/-]+)\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class GpuSlot:
    """A locked device: its name for CUDA_VISIBLE_DEVICES, and the lock's file descriptor."""

    name: str
    lock: int


def list_devices() -> tuple[str, ...]:
    """The devices, as CUDA_VISIBLE_DEVICES names them: those it allows, or all."""
    if VISIBLE_DEVICES in os.environ:
        return tuple(name.strip() for name in os.environ[VISIBLE_DEVICES].split(",") if name.strip())
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=_QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):  # a driver that does not answer has no usable devices
        return ()
    return parse_device_list(listed.stdout)


def parse_device_list(listed: str) -> tuple[str, ...]:
    """The devices of `nvidia-smi -L`; a partitioned device (MIG) counts as its parts."""
    found: list[tuple[str, list[str]]] = []
    for kind, name in _LISTED.findall(listed):
        if kind == "GPU":
            found.append((name, []))
        elif found:
            found[-1][1].append(name)
    return tuple(part for whole, parts in found for part in (parts or [whole]))


class GpuPool:
    """The slots of one supervisor: acquired as workers need them, and kept from one worker to the next.

    kinds  the devices that the compiler supports, for the message if there is no CUDA device
    """

    def __init__(self, devices: Iterable[str] | None = None, *, kinds: Iterable[str] = ()) -> None:
        self._devices = list_devices() if devices is None else tuple(devices)
        if not self._devices:
            others = [f"on the device {kind}" for kind in kinds if kind != CUDA_DEVICE]
            raise ToolchainError(
                f"there is no CUDA device here: nvidia-smi lists none, or {VISIBLE_DEVICES} is empty; "
                f"run {', or '.join(['on another machine', *others])}"
            )
        self._free: list[GpuSlot] = []
        self._held: list[GpuSlot] = []

    def try_acquire(self) -> GpuSlot | None:
        """A slot, or None if all are held."""
        if not self._free:
            ours = {slot.name for slot in self._held}
            taken = (_try_lock(device) for device in self._devices if device not in ours)
            slot = next((slot for slot in taken if slot is not None), None)
            if slot is None:
                return None
            self._held.append(slot)
            return slot
        return self._free.pop()

    def acquire(self, wait_s: float = _WAIT_S) -> GpuSlot:
        """A slot, as soon as one is free; raises ToolchainError after `wait_s` seconds."""
        until = time.monotonic() + wait_s
        while (slot := self.try_acquire()) is None:
            if time.monotonic() >= until:
                raise ToolchainError(
                    f"all CUDA devices ({', '.join(self._devices)}) are held by other runs for more than "
                    f"{wait_s:g} s; wait until they end, or end them"
                )
            time.sleep(_POLL_S)
        return slot

    def return_slot(self, slot: GpuSlot) -> None:
        """Makes the slot of an ended worker available to the next one."""
        self._free.append(slot)

    def close(self) -> None:
        """Releases all slots."""
        for slot in self._held:
            os.close(slot.lock)
        self._held.clear()
        self._free.clear()


def _try_lock(device: str) -> GpuSlot | None:
    path = _folder() / f"{re.sub(r'[^A-Za-z0-9-]', '_', device)}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return GpuSlot(device, lock)
    os.close(lock)
    return None


def _folder() -> Path:
    """The folder of this user's locks: the same for all runs of a user, another for each user."""
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    if not base.is_dir():
        base = Path(tempfile.gettempdir())
    folder = base / f"assay-gpu-{os.getuid()}"
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise ToolchainError(
            f"cannot make the folder {folder} for the locks of the devices: {error.strerror}; "
            "set XDG_RUNTIME_DIR to a folder that can be written"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ToolchainError(f"{folder} is not ours; remove it, or set XDG_RUNTIME_DIR to a folder of yours")
    return folder
