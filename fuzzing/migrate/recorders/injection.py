"""Injects a recorder into Python processes by the environment alone.

PYTHONPATH gets a folder with a `sitecustomize.py`, which every interpreter imports on start (unless it
ignores its environment). It starts the recorder when the library is imported, and runs the `sitecustomize`
that it shadows. This module runs in every process of the command, so it imports as little as possible.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ENVIRONMENT = "ASSAY_RECORD"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

_SITECUSTOMIZE = '''\
"""Assay's: starts its recorder in this process, then makes way for the sitecustomize behind it."""

import importlib.util

_spec = importlib.util.spec_from_file_location("_assay_injection", {file!r})
_injection = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_injection)
_injection.install_hook({folder!r})
'''


def make_environment(library: str, folder: str, given: dict[str, str]) -> dict[str, str]:
    """`given`, changed so that every Python process records `library` into `folder`.

    Writes the `sitecustomize.py` into `folder`.
    """
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:  # noqa: PTH118
        file.write(_SITECUSTOMIZE.format(file=os.path.abspath(__file__), folder=folder))  # noqa: PTH100
    path = [folder, *filter(None, [given.get("PYTHONPATH")])]
    record = json.dumps({"library": library, "folder": folder})
    return {**given, "PYTHONPATH": os.pathsep.join(path), ENVIRONMENT: record}


def install_hook(folder: str) -> None:
    """Waits for the library that the environment names; called by the `sitecustomize` in `folder`."""
    setting = os.environ.get(ENVIRONMENT)
    if setting is not None:
        sys.meta_path.insert(0, _ImportHook(**json.loads(setting)))
    _run_shadowed_sitecustomize(folder)


def _run_shadowed_sitecustomize(folder: str) -> None:
    """Runs the `sitecustomize` that would have been found otherwise, under its name."""
    others = [entry for entry in sys.path if os.path.abspath(entry) != folder]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class _ImportHook(MetaPathFinder):
    """Finds the library as the other finders do, and starts its recorder after it is executed."""

    def __init__(self, library: str, folder: str) -> None:
        self._library = library
        self._folder = folder

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """See `importlib.abc.MetaPathFinder`."""
        if fullname != self._library or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # once; and the others are to find it now
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _record(self._library, self._folder)

            loader.exec_module = exec_module  # of this loader: it was made for this module alone
        return spec


def _record(library: str, folder: str) -> None:
    """Starts the recorder. Errors are recorded and kept from the test."""
    try:
        _make_importable()
        from fuzzing.migrate.recorders import base, recording_file

        recorder = base.get(library)()
        recorder.start(recording_file.FileSink(folder, library))
    except Exception as error:  # noqa: BLE001 - the test is not to suffer from our troubles
        sys.stderr.write(f"assay: cannot record {library} in this process: {error!r}\n")


def _make_importable() -> None:
    """Makes `fuzzing` importable by its path alone, as in a worker."""
    worker = os.path.join(_ROOT, "execute", "worker.py")  # noqa: PTH118
    spec = importlib.util.spec_from_file_location("_assay_worker", worker)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.import_package(_ROOT)
