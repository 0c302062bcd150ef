"""A child process that answers each line of JSON with a line of JSON until its stdin closes.

For code that may crash its process, or needs another interpreter.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import fuzzing
from fuzzing.errors import InfrastructureError


class ProcessExitedError(Exception):
    """The process ended or timed out; the text is its last output."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class JsonProcess:
    """The running process.

    ready  the first line of its output, unrequested
    end    ends it; also runs when the object is garbage collected

    Raises InfrastructureError if it cannot be started, ProcessExitedError if it ends before its first line.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], seconds: float, advice: str
    ) -> None:
        """Runs `python -m MODULE …` as `arguments`, with time limits in seconds for answers and first line.

        advice  what to do if there is no such interpreter
        """
        self._seconds = seconds
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `_close_process` closes it
        try:
            ours = str(Path(fuzzing.__file__).parents[1])
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))}
                | dict(environment),
                cwd="/",  # where no file of the caller's can stand before a library
            )
        except OSError as error:
            self._log.close()
            raise InfrastructureError(f"cannot start {arguments[0]}: {error.strerror}; {advice}") from error
        self.end = weakref.finalize(self, _close_process, self._process, self._log)
        self.ready = self._read_answer()

    def request(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer to a request; raises ProcessExitedError."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # reported below with its last output
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        # The process writes one line for each request, so none is in the reader's buffer when this waits.
        ready, _, _ = select.select([self._process.stdout], [], [], self._seconds)
        line = self._process.stdout.readline() if ready else b""
        if not line.endswith(b"\n"):
            raise self._exit_error(late=not ready)
        found: dict[str, Any] = json.loads(line)
        return found

    def _exit_error(self, late: bool) -> ProcessExitedError:
        if late:
            self._process.kill()
        code = self._process.wait()
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip()
        self.end()
        return ProcessExitedError(code, f"no answer for {self._seconds:g} s" if late else words)


def _close_process(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
    process.wait()
    log.close()
