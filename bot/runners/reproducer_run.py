"""Reproducers tried before they are offered: under the toolchain's interpreter, in a process shut in."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bot import processes
from bot.errors import RunnerError
from fuzzing.execute.sandbox import launcher
from fuzzing.execute.sandbox.launch import sandboxed_command

#: A reproducer ends by itself after the limits of its phases; those of `bot.reports.reproducer` together, and
#: the interpreter's start twice.
TIMEOUT_S = 400.0
TIMED_OUT, NOT_RUN = 124, 125
#: What a reproducer prints when it exits with 1 (`templates/reproducers/base.py.j2`).
BUG_MARKER = b"THE BUG SHOWS"
_PASSED_VARIABLES = ("PATH", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "CUDA_*", "NVIDIA_*")


def try_script(text: str, python: str) -> int:
    """The exit code of a script under the interpreter `python`.

    1 only where it also says that the bug shows: an interpreter that is not there, and a script with a
    mistake in it, end with 1 as well. 124 where it does not end, 125 where it does not run, as of `timeout`.
    It gets a folder of its own and nothing of our environment. Raises RunnerError if nothing can be started.
    """
    with tempfile.TemporaryDirectory(prefix="assay-script-") as name:
        folder = Path(name)
        script = folder / "reproducer.py"
        script.write_text(text, encoding="utf-8")
        env = processes.filtered_environment(
            *_PASSED_VARIABLES, extra={"HOME": name, "TMPDIR": name, "OMP_NUM_THREADS": "1"}
        )
        command = sandboxed_command([python, "-I", str(script)], writable=(name,))
        try:
            done = processes.run(command, env=env, cwd=folder, timeout=TIMEOUT_S, kill_with_parent=True)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        except OSError as error:
            raise RunnerError(f"cannot start {python}: {error.strerror}") from error
    unmarked = done.returncode == 1 and BUG_MARKER not in done.stdout
    return NOT_RUN if unmarked or done.returncode == launcher.NOT_FOUND else done.returncode
