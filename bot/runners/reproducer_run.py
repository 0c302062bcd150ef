"""Runs reproducers before they are offered, confined, in the toolchain's interpreter."""

from __future__ import annotations

import ast
import importlib.util
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from bot import processes
from bot.errors import RunnerError
from fuzzing.compiler_messages import has_words
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
_TRACEBACK = "Traceback (most recent call last):"
#: The first frame of a traceback: a statement of the script.
_FRAME = re.compile(r'File "[^"\n]*reproducer\.py", line (\d+), in <module>')
_PASSED_VARIABLES = ("PATH", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "CUDA_*", "NVIDIA_*")


class Ending(NamedTuple):
    """How a short script ends where the bug shows.

    name       an exception's class or a signal's name
    words      of the exception's message, in this order
    assertion  the exception is raised by the script's last statement, which compares the outputs
    """

    name: str
    words: tuple[str, ...] = ()
    assertion: bool = False


def try_script(text: str, python: str, ending: Ending | None = None, *, with_onnx: bool = True) -> int:
    """The exit code of a script under the interpreter `python`, in a confined process.

    text       a guarded script, which prints that the bug shows before it exits with 1; or a short one
    ending     how a short script ends where the bug shows
    with_onnx  whether a short script gets our onnx, as toolchains have none

    Returns 1 only where the bug shows: an absent interpreter and a mistake in the script exit with 1 too. 124
    where it does not end, 125 where it does not run, as `timeout` has it. The process gets a folder of its
    own and none of our environment. Raises RunnerError if nothing can be started.
    """
    with tempfile.TemporaryDirectory(prefix="assay-script-") as name:
        folder = Path(name)
        script = folder / "reproducer.py"
        packages = _link_onnx(folder / "packages") if ending and with_onnx else []
        # One line in any case: `_is_from_last_statement` counts it.
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
        stderr = done.stderr.decode(errors="replace")
        return BUG_SHOWN if shows(ending, text, done.returncode, stderr) else NOT_RUN
    unmarked = done.returncode == 1 and BUG_MARKER not in done.stdout
    return NOT_RUN if unmarked or done.returncode == launcher.NOT_FOUND else done.returncode


def shows(ending: Ending, text: str, returncode: int, stderr: str) -> bool:
    """Whether the short script `text` ended as the bug has it."""
    if ending.name in signal.Signals.__members__:
        return returncode == -signal.Signals[ending.name]
    lines = stderr.splitlines()
    raised = [at for at, line in enumerate(lines) if _named_class(line) == ending.name]
    if returncode != 1 or not raised:
        return False
    if ending.assertion and not _is_from_last_statement(text, stderr):
        return False
    return has_words("\n".join(lines[raised[0] :]), ending.words)


def _named_class(line: str) -> str:
    """The class of the exception that a line names, without its module; "" if the line is indented."""
    return "" if line[:1].isspace() else line.partition(":")[0].rpartition(".")[2]


def _is_from_last_statement(text: str, stderr: str) -> bool:
    """Whether the last traceback begins in the last statement of `text`, which runs below one more line."""
    found = _FRAME.search(stderr, max(stderr.rfind(_TRACEBACK), 0))
    last = ast.parse(text).body[-1]
    return found is not None and last.lineno < int(found[1]) <= (last.end_lineno or last.lineno) + 1


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
