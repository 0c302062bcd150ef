"""What this machine can test: compilers, GPUs, isolation, case sources, tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

from bot.config import names
from bot.errors import ProvisionError
from bot.isolation import Isolation, machine_isolation, why_no_cgroup
from bot.toolchains.probe import probe
from fuzzing import backends
from fuzzing.execute import gpu_slots

_QUERY_TIMEOUT_S = 20.0  # nvidia-smi takes seconds if many GPUs sleep


@dataclass(frozen=True)
class Compiler:
    """A backend on one interpreter.

    state      "ready", "missing" (not installed), "broken" (installed, but its import fails) or "no_device"
               (none of its devices is on this machine)
    version    of the compiler's package, "" if missing
    detail     how to install it, or why it does not work
    frontends  what it loads
    devices    names of its devices, the default first
    options    option → allowed values, the default first
    """

    backend: str
    state: str
    version: str
    detail: str
    frontends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    memory: str
    driver: str


@dataclass(frozen=True)
class Source:
    """A case source, migrated by Assay's own interpreter.

    library  whose tests it migrates
    absent   missing distributions; `detail` is how to install them
    """

    name: str
    library: str
    absent: tuple[str, ...]
    detail: str


@dataclass(frozen=True)
class Tool:
    """A program of the system; `path` is "" if missing, `why` its purpose."""

    name: str
    path: str
    why: str


@dataclass(frozen=True)
class Machine:
    """Everything `assay doctor` prints.

    why_no_cgroup  why no control group limits a sandbox's processes together, "" if one does
    slots          CUDA devices, or parts of one, one worker each, as in CUDA_VISIBLE_DEVICES
    """

    python: str
    cores: int
    memory_bytes: int
    compilers: tuple[Compiler, ...]
    isolation: Isolation
    why_no_cgroup: str
    gpus: tuple[Gpu, ...]
    slots: tuple[str, ...]
    tools: tuple[Tool, ...]
    sources: tuple[Source, ...]

    @property
    def testable(self) -> tuple[Compiler, ...]:
        """The compilers that are ready."""
        return tuple(one for one in self.compilers if one.state == "ready")


def inspect_machine(python: str = sys.executable) -> Machine:
    """Inspects this machine; each compiler is imported, in its own confined process.

    Raises ProvisionError: `python` cannot be started.
    """
    if not os.access(python, os.X_OK):
        raise ProvisionError(f"{python} is no interpreter; give the path of a python executable")
    kinds = [backends.get(name) for name in backends.compilers()]
    slots = gpu_slots.list_devices()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        compilers = tuple(pool.map(lambda kind: _compiler(python, kind, slots), kinds))
    return Machine(
        python=python,
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        compilers=compilers,
        isolation=machine_isolation(),
        why_no_cgroup=why_no_cgroup(),
        gpus=tuple(_gpus()),
        slots=slots,
        tools=tuple(Tool(name, shutil.which(name) or "", why) for name, why in _TOOLS),
        sources=tuple(map(_source, names.sources())),
    )


def _source(name: str) -> Source:
    absent = names.missing_packages(name)
    detail = f"{sys.executable} -m pip install {' '.join(absent)}" if absent else ""
    return Source(name, names.source_libraries()[name], absent, detail)


_TOOLS = (("git", "reads the commits of a target"), ("g++", "compiles what inductor writes for the CPU"))


def _compiler(python: str, kind: type[backends.Backend], slots: tuple[str, ...]) -> Compiler:
    state, release, detail = _state(python, kind)
    if state == "ready" and set(kind.devices) == {gpu_slots.CUDA_DEVICE} and not slots:
        state, detail = "no_device", "it needs a CUDA device, and nvidia-smi lists none here"
    return Compiler(kind.name, state, release, detail, names.frontends(kind.name), kind.devices, kind.options)


def _state(python: str, kind: type[backends.Backend]) -> tuple[str, str, str]:
    try:
        found = probe(Path(python), kind.import_name, environment=kind.environment)
    except ProvisionError as error:
        reason = str(error).strip()
        top = kind.import_name.partition(".")[0]
        modules = {kind.import_name, top}
        if any(f"No module named '{name}'" in reason for name in modules):  # and not a module that it imports
            wanted = " ".join(Requirement(item).name for item in kind.requirements(_ANY))
            return "missing", "", f"{python} -m pip install {wanted}"
        return "broken", "", reason
    return "ready", found.packages.get(kind.package, "?"), ""


#: A release without special cases in any backend.
_ANY = "9999.0.0"


def _gpus() -> list[Gpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_QUERY_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return []
    if done.returncode:
        return []
    rows = (line.split(", ") for line in done.stdout.splitlines())
    return [Gpu(*row) for row in rows if len(row) == 3]
