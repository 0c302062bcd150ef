"""The command line that starts a program in the sandbox."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from fuzzing.execute.sandbox import cgroup, isolation, launcher
from fuzzing.execute.sandbox.kernel import NotPermitted

#: Default size of the largest file that a program may write, in bytes.
FILE_BYTES = 1 << 30
#: Variable with further folders that every sandboxed program may read, such as a compiler built from source.
READABLE_VARIABLE = "ASSAY_READABLE"
_PROVISIONED = "toolchains"  # the folder where `bot.toolchains` makes environments
_MAX_LINKS = 40  # between an environment's interpreter and the installation's; the kernel's limit


def sandboxed_command(
    command: Sequence[str],
    *,
    writable: Sequence[str | Path],
    readable: Sequence[str | Path] = (),
    best: str = isolation.NAMESPACES,
    required: str = isolation.NONE,
    cores: Collection[int] = (),
    memory_bytes: int | None = None,
    file_bytes: int = FILE_BYTES,
    total_bytes: int | None = None,
) -> list[str]:
    """The command line that runs `command` in the sandbox.

    command       an absolute path and its arguments; an interpreter's folders become readable
    writable      folders, absolute, in which it may write
    readable      files and folders, absolute, that it may read, in addition to those and the system's
    best          the best level to take, of isolation.LEVELS; the kernel may allow only a lower one
    required      the lowest level accepted; below it the process exits with launcher.NOT_CONFINED
    memory_bytes  private writable memory of each process
    total_bytes   memory of all its processes together, where a control group is delegated

    The process dies with the thread that started it. The caller chooses its environment: the sandbox hides no
    variable.
    """
    spec = {
        "command": list(command),
        "isolation": best,
        "required": required,
        "writable": [str(folder) for folder in writable],
        "readable": [
            command[0],
            *interpreter_folders(Path(command[0])),
            *_operators_folders(),
            *map(str, readable),
        ],
        "cores": sorted(cores),
        "memory_bytes": memory_bytes,
        "file_bytes": file_bytes,
        "cgroup": totals_group(),
        "total_bytes": total_bytes,
    }
    return [sys.executable, "-I", "-S", launcher.__file__, json.dumps(spec)]


@cache
def totals_group() -> str | None:
    """The control group below which each sandbox gets one of its own; None if the system delegates none."""
    try:
        return cgroup.delegated_group()
    except NotPermitted:
        return None


def interpreter_folders(python: Path) -> list[str]:
    """The folders that an interpreter needs: its environment, and the installation it was made from.

    Each must look like a Python installation, so that no link exposes a home folder.
    """
    found: list[str] = []
    here = python.absolute()
    for _ in range(_MAX_LINKS):
        for folder in (here.parent.parent, *_made_from(here.parent.parent)):
            if str(folder) not in found and _is_installation(folder):
                found += [str(folder), *_linked_folders(folder)]
        if not here.is_symlink():
            break
        here = Path(os.path.normpath(here.parent / here.readlink()))
    return found


def _made_from(environment: Path) -> list[Path]:
    """The installation that a virtual environment's interpreter was made from."""
    try:
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = [line.partition("=") for line in lines]
    return [Path(value.strip()).parent for name, _, value in pairs if name.strip() == "home"]


def _linked_folders(environment: Path) -> list[str]:
    """Folders that the `.pth` files of an environment add to the path, as `pip install -e` does.

    Only for an operator's environment: in one made by Assay, a package could name any folder.
    """
    if _PROVISIONED in environment.parts:
        return []
    found = []
    for file in sorted(environment.glob("lib*/python3*/*-packages/*.pth")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            folder = Path(line.strip())
            if folder.is_absolute() and folder.is_dir() and not Path.home().is_relative_to(folder):
                found.append(str(folder))
    return found


def _is_installation(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() or any(folder.glob("lib*/python3*/os.py"))


def _operators_folders() -> list[str]:
    """What the operator allows: folders of libraries, and those named in ASSAY_READABLE."""
    names = [os.environ.get(name, "") for name in (READABLE_VARIABLE, "LD_LIBRARY_PATH")]
    return [path for text in names for path in text.split(os.pathsep) if Path(path).is_absolute()]
