"""Starts a program behind the walls: `python -I -S launcher.py SPEC`, SPEC a JSON object.

It runs under Assay's own interpreter, enters the walls, sets the limits, and only then becomes the program.
So nothing of a toolchain runs outside: neither its interpreter nor what that runs at its start (`.pth` files,
sitecustomize). `fuzzing.execute.sandbox.launch.sandboxed_command` makes the command line.

    command       the program and its arguments
    isolation     the best level to take, of isolation.LEVELS
    required      the lowest level that will do; below it the launcher exits with NOT_CONFINED
    writable      folders in which the program may write
    cores         processors it may use; [] for all
    memory_bytes  private writable memory of each process; null for no limit
    file_bytes    largest file

The program finds the level taken in the variable ASSAY_ISOLATION.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

#: Exit codes: the required isolation is not to be had; the program cannot be started (as in a shell).
NOT_CONFINED, NOT_FOUND = 125, 127
LEVEL_VARIABLE = "ASSAY_ISOLATION"
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9  # linux/prctl.h


def main(argument: str) -> None:
    """Becomes the program that `argument` describes."""
    spec = json.loads(argument)
    _import_package()
    from fuzzing.execute.sandbox import isolation

    if spec["cores"]:
        with contextlib.suppress(OSError):  # some of them may be gone by now
            os.sched_setaffinity(0, spec["cores"])
    access = isolation.AllowedAccess(tuple(spec["writable"]), spec["file_bytes"])
    level, refused = isolation.enter(access, spec["isolation"])
    if isolation.LEVELS.index(level) > isolation.LEVELS.index(spec["required"]):
        why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        sys.stderr.write(f"isolation {spec['required']} is required, this machine allows {level} ({why})\n")
        sys.exit(NOT_CONFINED)
    # No orphan survives a kill -9 of the parent. Not before: a change of privileges clears it.
    isolation.LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    _set_limits(spec)
    os.environ[LEVEL_VARIABLE] = level
    try:
        os.execv(spec["command"][0], spec["command"])  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"cannot start {spec['command'][0]}: {error.strerror}\n")
        sys.exit(NOT_FOUND)


def _set_limits(spec: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (spec["file_bytes"], spec["file_bytes"]))
    if spec["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (spec["memory_bytes"], spec["memory_bytes"]))


def _import_package() -> None:
    """Makes the package `fuzzing` importable: without `site` it lies on no path."""
    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        "fuzzing", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzzing"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main(sys.argv[1])
