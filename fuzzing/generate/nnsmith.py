"""NNSmith (ASPLOS 2023) as a generator: its models, made by a process of an interpreter that has it.

NNSmith installs beside Assay (`pip install 'assay[nnsmith]'`); the process is there because one seed is to
give one model, for which hashes must be pinned, and because NNSmith patches torch's exporter. An interpreter
of its own does as well: name it in ASSAY_NNSMITH_PYTHON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import weakref
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from platformdirs import user_cache_path

import fuzzing
from fuzzing.draws import Draws, derive
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.generate.generators import register_generator
from fuzzing.generate.isra.settings import Settings
from fuzzing.generate.isra.solver import Generated
from fuzzing.graph.intervals import BOOLEAN, Interval
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import TensorType

#: Names the interpreter that has NNSmith, where it is not ours.
VARIABLE = "ASSAY_NNSMITH_PYTHON"
INSTALL = "pip install 'nnsmith==0.1.0' 'z3-solver<5.4' torch onnx"
#: What NNSmith draws inputs from: 5 ± 2, rounded for whole numbers (`random_tensor` of its torch models).
_INPUTS = Interval(3.0, 7.0)
#: Models of one seed that are tried until one can be exported; about one in two hundred cannot.
_MOST_TRIES = 20
_PROGRAM = "fuzzing.generate.nnsmith_program"


class CannotMakeError(Exception):
    """NNSmith could not make, or not export, the model of a seed; the text is its reason."""


@dataclass(frozen=True)
class Made:
    """A model of NNSmith's.

    seconds  that it took, export included
    """

    onnx: bytes
    seconds: float


@register_generator("nnsmith")
class NNSmith:
    """Generates models under some settings; NNSmith has operators, shapes and an opset (14) of its own.

    Of the settings it obeys `nodes`, counted as NNSmith counts (one becomes 2.7 of ONNX's), and `dtypes`.
    Raises UsageError for a choice of operators. The process starts with the first model; `close` ends it.
    """

    def __init__(self, settings: Settings, python: str = "") -> None:
        if settings.operators:
            raise UsageError("nnsmith has operators of its own names: leave out --operators and --backend")
        self.settings = settings
        self._python = python or os.environ.get(VARIABLE) or sys.executable
        self._process: _Process | None = None

    def generate(self, seed: int) -> Generated:
        """The model of this seed, or of one derived from it if NNSmith cannot export that.

        Raises InfrastructureError if there is no NNSmith.
        """
        for number in range(_MOST_TRIES):
            with suppress(CannotMakeError):
                made = self.model(derive(seed, "nnsmith", number), list(self.settings.dtypes))
                graph = from_onnx(made.onnx)
                return Generated(graph, {edge: range_of(graph.types[edge]) for edge in graph.inputs})
        raise InfrastructureError(f"NNSmith could export none of {_MOST_TRIES} models; its words stand above")

    def model(self, seed: int, dtypes: list[str] | None = None, folder: Path | None = None) -> Made:
        """The model of just this seed; raises CannotMakeError.

        dtypes  element types of data; None: all that NNSmith has
        folder  where NNSmith is to search weights and write all its files, as its own command does
        """
        nodes = Draws(derive(seed, "nodes")).between(*self.settings.nodes)
        found = self.process.ask(
            {
                "seed": seed,
                "nodes": nodes,
                "dtypes": dtypes,
                "folder": None if folder is None else str(folder),
            }
        )
        if found["event"] == "failed":
            raise CannotMakeError(found["reason"])
        return Made(b64decode(found["onnx"]), found["seconds"])

    @property
    def versions(self) -> Mapping[str, str]:
        """Of NNSmith, z3-solver, torch, onnx and numpy, where NNSmith runs."""
        found: Mapping[str, str] = self.process.ready["versions"]
        return found

    @property
    def process(self) -> _Process:
        """The process that makes the models; started now if there is none."""
        if self._process is None:
            self._process = _Process(self._python)
        return self._process

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None


def range_of(type_: TensorType) -> Interval:
    """What an input of NNSmith's models is drawn from."""
    return BOOLEAN if type_.dtype == "bool" else _INPUTS


class _Process:
    """The program, while it runs. Raises InfrastructureError if it cannot.

    ready  what it said when it was
    end    ends it; done, too, when nothing uses it any more
    """

    def __init__(self, python: str) -> None:
        self._python = python
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `_end` closes it
        try:
            self._process = subprocess.Popen(
                [python, "-m", _PROGRAM, str(user_cache_path("assay") / "nnsmith")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=_environment(),
                cwd="/",  # where no file of the caller's can stand before a library
                text=True,
            )
        except OSError as error:
            self._log.close()
            raise InfrastructureError(
                f"cannot start {python}: {error.strerror}; {VARIABLE} must name a Python that has NNSmith"
            ) from error
        self.end = weakref.finalize(self, _end, self._process, self._log)
        self.ready = self._answer()

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer to a request."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its end is told below, with its last words
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise InfrastructureError(self._obituary())
        found: dict[str, Any] = json.loads(line)
        return found

    def _obituary(self) -> str:
        code = self._process.wait()
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip()
        self.end()
        missing = re.findall(r"No module named '(\w+)", words)
        if missing:
            return (
                f"{self._python} has no {missing[-1]}, so NNSmith cannot run in it; install with: {INSTALL}\n"
                f"or name an interpreter that has it in {VARIABLE}"
            )
        return (
            f"NNSmith's process in {self._python} ended with exit code {code}: {words.rpartition(chr(10))[2]}"
        )


def _environment() -> dict[str, str]:
    ours = str(Path(fuzzing.__file__).parents[1])
    return os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": ours, "OMP_NUM_THREADS": "1"}


def _end(process: subprocess.Popen[str], log: IO[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
    process.wait()
    log.close()
