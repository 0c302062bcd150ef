"""A script of ours in any toolchain's interpreter, shut in as cases are.

    PYTHON -I fuzzing/execute/sandboxed_script.py PACKAGE FOLDER SCRIPT

runs SCRIPT, which may write in FOLDER alone; PACKAGE is where `fuzzing` lies. Its exit code is the script's.
It needs Python 3.8 and the standard library only (law 3).
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from typing import Any, List

#: What a script may write to one file and to shared memory: the worker's own default.
_FILE_BYTES = 1 << 30


def main(argv: List[str]) -> None:
    """Shuts this process in, then runs the script."""
    package, folder, script = argv
    _worker(package).import_package(package)
    from fuzzing.execute.sandbox import isolation

    isolation.enter(isolation.AllowedAccess((folder,), _FILE_BYTES))
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")


def _worker(package: str) -> Any:
    """The worker's module, by its path: `fuzzing` itself is not to be found from here."""
    path = os.path.join(package, "execute", "worker.py")  # noqa: PTH118 - as in the worker
    spec = importlib.util.spec_from_file_location("_assay_worker", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no worker at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1:])
