"""Runs reproducers before they are offered, confined, in the toolchain's interpreter."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import tempfile
from pathlib import Path

from bot import processes
from bot.errors import RunnerError
from fuzzing.execute.sandbox import launcher
from fuzzing.execute.sandbox.launch import sandboxed_command

#: A guarded reproducer ends by itself after the limits of its phases: the sum of those in
#: `bot.reports.reproducer`, and two starts of the interpreter.
TIMEOUT_S = 400.0
_MAX_OUTPUT = 16 << 20  # bytes
TIMED_OUT, NOT_RUN = 124, 125
#: The exit code of a script that shows its bug.
BUG_SHOWN = 1
#: What `import onnx` needs beside numpy.
_ONNX_PACKAGES = ("onnx", "google", "ml_dtypes", "typing_extensions")
#: What a reproducer prints when it exits with 1 (`templates/reproducers/base.py.j2`).
BUG_MARKER = b"THE BUG SHOWS"
_PASSED_VARIABLES = ("PATH", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "CUDA_*", "NVIDIA_*")


def try_script(text: str, python: str, ending: str = "") -> int:
    """The exit code of a script under the interpreter `python`, in a confined process.

    text    a guarded script, which prints that the bug shows before it exits with 1; or a short one
    ending  what ends a short script where the bug shows: an exception's class or a signal's name

    Returns 1 only where the bug shows: an absent interpreter and a mistake in the script exit with 1 too. 124
    where it does not end, 125 where it does not run, as `timeout` has it. The process gets a folder of its
    own and none of our environment. Raises RunnerError if nothing can be started.
    """
    with tempfile.TemporaryDirectory(prefix="assay-script-") as name:
        folder = Path(name)
        script = folder / "reproducer.py"
        packages = _link_onnx(folder / "packages") if ending else []
        start = f"import sys; sys.path.append({str(folder / 'packages')!r})\n" if ending else ""
        script.write_text(start + text, encoding="utf-8")
        env = processes.filtered_environment(
            *_PASSED_VARIABLES, extra={"HOME": name, "TMPDIR": name, "OMP_NUM_THREADS": "1"}
        )
        command = sandboxed_command([python, "-I", str(script)], writable=(name,), readable=packages)
        try:
            done = processes.run(
                command,
                env=env,
                cwd=folder,
                timeout=TIMEOUT_S,
                kill_with_parent=True,
                max_output=_MAX_OUTPUT,
            )
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        except OSError as error:
            raise RunnerError(f"cannot start {python}: {error.strerror}") from error
    if ending:
        return BUG_SHOWN if shows(ending, done.returncode, done.stderr) else NOT_RUN
    unmarked = done.returncode == 1 and BUG_MARKER not in done.stdout
    return NOT_RUN if unmarked or done.returncode == launcher.NOT_FOUND else done.returncode


def shows(ending: str, returncode: int, stderr: bytes) -> bool:
    """Whether a short script ended as the bug has it: killed by a signal, or by an exception of a class."""
    if ending in signal.Signals.__members__:
        return returncode == -signal.Signals[ending]
    raised = [line.partition(b":")[0] for line in stderr.splitlines() if line and not line[:1].isspace()]
    return returncode == 1 and ending.encode() in {line.rpartition(b".")[2] for line in raised}


def _link_onnx(folder: Path) -> list[Path]:
    """Links our onnx in a new folder, for toolchains without one; what the links lead to."""
    folder.mkdir()
    found = []
    for name in _ONNX_PACKAGES:
        if spec := importlib.util.find_spec(name):
            package = Path([*(spec.submodule_search_locations or ()), str(spec.origin)][0])
            (folder / package.name).symlink_to(package)
            found.append(package)
    return found
