"""NNSmith (ASPLOS 2023) as a generator, run in a child process.

Install with `pip install 'assay[nnsmith]'`, or name an interpreter that has NNSmith in ASSAY_NNSMITH_PYTHON.
The process fixes hash seeds, so that one seed gives one model, and isolates NNSmith's patches of torch's
exporter.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.generate.generators import GeneratedGraph, register_generator
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.json_process import JsonProcess, ProcessExitedError
from fuzzing.graph.intervals import BOOLEAN, Interval
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng, derive_seed

#: Names the interpreter that has NNSmith, where it is not ours.
VARIABLE = "ASSAY_NNSMITH_PYTHON"
INSTALL = "pip install 'nnsmith==0.1.0' 'z3-solver<5.4' torch onnx"
#: What NNSmith draws inputs from: 5 ± 2, rounded for whole numbers (`random_tensor` of its torch models).
_INPUTS = Interval(3.0, 7.0)
#: Models of one seed that are tried until one can be exported: of 400 of 16 nodes each could, at once.
_MAX_ATTEMPTS = 20
#: For an answer; the first one waits until NNSmith has tried all its operators.
_SECONDS = 600.0
_PROGRAM = "fuzzing.generate.nnsmith_worker"


class GenerationError(Exception):
    """NNSmith could not make, or not export, the model of a seed; the text is its reason."""


@dataclass(frozen=True)
class GeneratedModel:
    """A model by NNSmith.

    seconds, cpu  wall and CPU time, export included
    """

    onnx: bytes
    seconds: float
    cpu: float


@register_generator("nnsmith")
class NNSmith:
    """Generates models under some settings, with NNSmith's own operators, shapes and opset (14).

    Uses the settings `nodes`, counted as NNSmith counts (one becomes 2.7 of ONNX's), and `dtypes`. Raises
    UsageError for a choice of operators. The process starts with the first model; `close` ends it.
    """

    def __init__(self, settings: GeneratorSettings, python: str = "") -> None:
        if settings.operators:
            raise UsageError("nnsmith has operators of its own names: leave out --operators and --backend")
        self.settings = settings
        self._python = python or os.environ.get(VARIABLE) or sys.executable
        self._child: JsonProcess | None = None

    def generate(self, seed: int) -> GeneratedGraph:
        """The model of this seed, or of one derived from it if NNSmith cannot export that.

        Raises InfrastructureError if there is no NNSmith.
        """
        reason = ""
        for number in range(_MAX_ATTEMPTS):
            try:
                made = self.model(derive_seed(seed, "nnsmith", number), list(self.settings.dtypes))
            except GenerationError as error:
                reason = str(error)
                continue
            graph = from_onnx(made.onnx)
            return GeneratedGraph(graph, {edge: input_range(graph.types[edge]) for edge in graph.inputs})
        raise InfrastructureError(
            f"NNSmith could make none of {_MAX_ATTEMPTS} models, the last one for: {reason}"
        )

    def model(self, seed: int, dtypes: list[str] | None = None, folder: Path | None = None) -> GeneratedModel:
        """The model of exactly this seed; raises GenerationError.

        dtypes  element types of data; None: all that NNSmith has
        folder  where NNSmith searches weights and writes all its files, as its own command does
        """
        nodes = Rng(derive_seed(seed, "nodes")).between(*self.settings.nodes)
        options = {"seed": seed, "nodes": nodes, "dtypes": dtypes}
        try:
            found = self._start().request(options | {"folder": None if folder is None else str(folder)})
        except ProcessExitedError as error:
            self._child = None
            raise self._infrastructure_error(error) from error
        if found["event"] == "failed":
            raise GenerationError(found["reason"])
        return GeneratedModel(b64decode(found["onnx"]), found["seconds"], found["cpu"])

    @property
    def versions(self) -> Mapping[str, str]:
        """Of NNSmith, z3-solver, torch, onnx and numpy, where NNSmith runs."""
        found: Mapping[str, str] = self._start().ready["versions"]
        return found

    def _start(self) -> JsonProcess:
        if self._child is None:
            command = [self._python, "-m", _PROGRAM, str(user_cache_path("assay") / "nnsmith")]
            environment = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
            advice = f"{VARIABLE} must name a Python that has NNSmith"
            try:
                self._child = JsonProcess(command, environment, _SECONDS, advice)
            except ProcessExitedError as error:
                raise self._infrastructure_error(error) from error
        return self._child

    def _infrastructure_error(self, error: ProcessExitedError) -> InfrastructureError:
        words = str(error)
        missing = re.findall(r"No module named '(\w+)", words)
        if missing:
            return InfrastructureError(
                f"{self._python} has no {missing[-1]}, so NNSmith cannot run in it; install with: {INSTALL}\n"
                f"or name an interpreter that has it in {VARIABLE}"
            )
        last = words.rpartition("\n")[2]
        return InfrastructureError(
            f"NNSmith's process in {self._python} ended with code {error.code}: {last}"
        )

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._child is not None:
            self._child.end()
            self._child = None


def input_range(type_: TensorType) -> Interval:
    """The range of an input of NNSmith's models."""
    return BOOLEAN if type_.dtype == "bool" else _INPUTS
