"""`python -P keras_runner.py REPORT FILE…`: runs Keras' own test files by pytest, each in a fork.

torch, Keras and pytest are imported once; a fork costs a hundredth of that, and isolates crashes and hangs.
REPORT gets a JSON line for each file: {"file", "exit", "seconds", "cpu"}; exit is pytest's code, negative
for a signal, null for a timeout; seconds are wall and CPU time. The wheel lacks `conftest.py` and other
frameworks that some tests import, so there are stand-ins for them.
Uses only the standard library, torch, Keras and pytest; recording happens from outside.
"""

from __future__ import annotations

import builtins
import gc
import json
import multiprocessing
import os
import resource
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

SEED = 0
CPU_S = 120  # of one file, whose tests compute; the longest takes a sixth of that
FILE_S = 600.0  # by the clock, on a machine that others use too
MEMORY_BYTES = 6 << 30  # of data in one process; what tests take beside the libraries is some megabytes
#: What test files import and may be missing: other frameworks, and packages of a few tests only.
STAND_INS = frozenset({"grain", "jax", "pandas", "scipy", "sklearn", "tensorflow"})
#: Words in the names of tests that are left out: they change a layer after it was made, or save it, and cost
#: more than all others.
LEFT_OUT = ("awq", "export", "gptq", "int4", "lora", "quanti", "saving", "serializ")
#: Silent, without a cache or a configuration of others. Assertions are left as they stand, which is faster
#: to import; the plugin for what cannot be raised would collect all garbage after each file: half a second.
_OPTIONS = [
    *("-q", "--tb=no", "--assert=plain", "-c", os.devnull, "-W", "ignore"),
    *("-p", "no:cacheprovider", "-p", "no:unraisableexception"),
    *("-k", f"not ({' or '.join(LEFT_OUT)})"),
]


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    report, *files = arguments
    import keras
    import pytest  # noqa: F401 - imported once, for all forks
    import torch

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they would be imported by every fork
    torch.set_num_threads(1)  # of a process with threads, a fork has only the one
    root = Path(keras.__file__).parent.parent
    _stand_in(_conftest())
    _disable_training_checks()
    gc.collect()
    gc.freeze()  # what is imported by now is not looked through again, nor copied for it
    with open(report, "a", encoding="utf-8") as lines:
        for place, file in enumerate(files, 1):
            result = _run_in_fork(root, file)
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            took = f"{result['seconds']:.1f} s, {result['cpu']:.1f} s of the processor"
            sys.stderr.write(f"keras-tests: {place}/{len(files)} {file}: {took}\n")
    return 0


def _run_in_fork(root: Path, file: str) -> dict[str, Any]:
    begin, spent = time.perf_counter(), _children_s()
    process = multiprocessing.get_context("fork").Process(target=_run, args=(root, file))
    process.start()
    process.join(FILE_S)
    ended = process.exitcode
    if ended is None:
        process.kill()
        process.join()
    seconds = time.perf_counter() - begin
    return {"file": file, "exit": ended, "seconds": round(seconds, 3), "cpu": round(_children_s() - spent, 3)}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(root: Path, file: str) -> None:
    import keras
    import pytest

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    keras.utils.set_random_seed(SEED)
    sys.exit(int(pytest.main([*_OPTIONS, f"--rootdir={root}", str(root / file)])))


def _disable_training_checks() -> None:
    """Removes the training step from Keras' layer checks: it calls nothing new."""
    from keras.src.testing import TestCase

    checklist: Callable[..., Any] = TestCase.run_layer_test

    def without_training(*args: Any, **kwargs: Any) -> Any:
        return checklist(*args, **{**kwargs, "run_training_check": False})

    TestCase.run_layer_test = without_training


def _conftest() -> types.ModuleType:
    """Stands in for Keras' conftest, whose one function marks what a backend cannot do."""
    import pytest
    from keras.config import backend

    def skip_if_backend(name: str, reason: str) -> Any:
        return pytest.mark.skipif(backend() == name, reason=reason)

    module = types.ModuleType("conftest")
    vars(module)["skip_if_backend"] = skip_if_backend
    return module


def _stand_in(conftest: types.ModuleType) -> None:
    """Gives test files, and nobody else, something to import for missing packages.

    Keras itself must not see it, because it checks what is installed. Tests that need the real package fail.
    """
    original = builtins.__import__

    def importing(
        name: str,
        names: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        importer = str((names or {}).get("__name__", ""))
        at_top = sys._getframe(1).f_code.co_name == "<module>"  # a test that needs one inside, fails at once
        if level == 0 and at_top and importer.endswith("_test"):
            if name == "conftest":
                return conftest
            if name.partition(".")[0] in STAND_INS:
                return _missing(original, name, names, local, wanted)
        return original(name, names, local, wanted, level)

    builtins.__import__ = importing  # type: ignore[assignment]


def _missing(original: Any, name: str, *rest: Any) -> Any:
    try:
        return original(name, *rest)
    except ImportError:
        return mock.MagicMock(name=name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
