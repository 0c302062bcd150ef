"""Runs one test of a repository, confined, in a toolchain's interpreter."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bot import processes
from bot.errors import RunnerError
from fuzzing.execute.sandbox.launch import sandboxed_command

#: Characters of output that are kept.
MAX_OUTPUT = 4_000
_PASSED_VARIABLES = ("PATH", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "CUDA_*", "NVIDIA_*")
#: What test runners print where they found no test, or cannot start.
_NOT_RUN = ("no tests ran", "Ran 0 tests", "No module named", "ModuleNotFoundError", "ImportError")


#: Runs a command and writes the processor seconds of it and its children into a file.
_TIMED = """\
import os, subprocess, sys
code = subprocess.call(sys.argv[2:])
used = os.times()
with open(sys.argv[1], "w") as file:
    print(used.children_user + used.children_system, file=file)
sys.exit(code if code >= 0 else 128 - code)
"""


class RunResult(NamedTuple):
    """One run: whether the test ran, whether it passed, its seconds, the end of its output.

    The seconds are those of the processor, at most those of the clock: campaigns run beside it.
    """

    ran: bool
    passed: bool
    seconds: float
    output: str


def run_test(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
    """Runs `python ARGUMENTS` in a folder of its own with `files`, and none of our environment.

    A test that does not end in `timeout_s` fails. Raises RunnerError if nothing can be started.
    """
    with (
        tempfile.TemporaryDirectory(prefix="assay-test-") as name,
        tempfile.NamedTemporaryFile("r", prefix="assay-test-") as used,
    ):
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        env = processes.filtered_environment(
            *_PASSED_VARIABLES,
            extra={"HOME": name, "TMPDIR": name, "PYTHONPATH": name, "OMP_NUM_THREADS": "1"},
        )
        confined = sandboxed_command([python, *arguments], writable=(name,))
        command = [sys.executable, "-I", "-S", "-c", _TIMED, used.name, *confined]
        begun = time.monotonic()
        try:
            done = processes.run(command, env=env, cwd=folder, timeout=timeout_s, kill_with_parent=True)
        except subprocess.TimeoutExpired:
            return RunResult(
                ran=True, passed=False, seconds=timeout_s, output=f"does not end in {timeout_s:g} s"
            )
        except OSError as error:
            raise RunnerError(f"cannot start {python}: {error.strerror}") from error
        seconds = min(time.monotonic() - begun, float(used.read() or "inf"))
    output = (done.stdout + done.stderr).decode("utf-8", errors="replace")[-MAX_OUTPUT:]
    missing = done.returncode != 0 and any(sign in output for sign in _NOT_RUN)
    return RunResult(not missing, done.returncode == 0 and not missing, seconds, output)
