"""What this machine can test: compilers that can be imported, GPUs, and what else the work needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bot.errors import ProvisionError
from bot.toolchains.probe import probe
from fuzzing import backends

_QUERY_TIMEOUT_S = 20.0  # nvidia-smi takes seconds on a machine with many sleeping GPUs


@dataclass(frozen=True)
class Compiler:
    """A backend on one interpreter.

    state    "ready", "missing" (not installed) or "broken" (installed, but its import fails)
    version  of the compiler's package, "" if missing
    detail   how to get it, or why it does not work
    """

    backend: str
    state: str
    version: str
    detail: str


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    memory: str
    driver: str


@dataclass(frozen=True)
class Tool:
    """A program or service of the system; `path` is "" where it is missing, `why` says what it is for."""

    name: str
    path: str
    why: str


@dataclass(frozen=True)
class Machine:
    """Everything `assay doctor` tells."""

    python: str
    cores: int
    memory_bytes: int
    compilers: tuple[Compiler, ...]
    gpus: tuple[Gpu, ...]
    tools: tuple[Tool, ...]

    @property
    def testable(self) -> tuple[Compiler, ...]:
        """The compilers that work."""
        return tuple(one for one in self.compilers if one.state == "ready")


def examine(python: str = sys.executable) -> Machine:
    """Looks at this machine; each compiler is really imported, in a process of its own.

    Raises ProvisionError if `python` cannot be started: nothing is known of any compiler then.
    """
    if not os.access(python, os.X_OK):
        raise ProvisionError(f"{python} is no interpreter; give the path of a python executable")
    kinds = [backends.get(name) for name in backends.compilers()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compilers = tuple(pool.map(lambda kind: _compiler(python, kind), kinds))
    return Machine(
        python=python,
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        compilers=compilers,
        gpus=tuple(_gpus()),
        tools=tuple(Tool(name, shutil.which(name) or "", why) for name, why in _TOOLS),
    )


_TOOLS = (("git", "reads the commits of a target"),)


def _compiler(python: str, kind: type[backends.Backend]) -> Compiler:
    try:
        found = probe(Path(python), kind.import_name)
    except ProvisionError as error:
        reason = str(error).strip()
        if f"No module named '{kind.import_name}'" in reason:  # and not what the compiler itself imports
            return Compiler(kind.name, "missing", "", f"{python} -m pip install {kind.package}")
        return Compiler(kind.name, "broken", "", reason)
    return Compiler(kind.name, "ready", found.packages.get(kind.package, "?"), "")


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
