"""tinygrad, releases 0.13 and later: its ONNX importer, its scheduler and its code generator for CPUs.

Kernels are C that `clang` compiles, or machine code of tinygrad's own assembler. Both need a clang on the
machine: tinygrad's CPU device compiles its command queue with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import Any, ClassVar, Dict, Iterator, List, Tuple

import numpy as np

from fuzzing.backends.base import AblationLevel, Backend, Named, Unsupported, UnsupportedPattern, register
from fuzzing.backends.shared.call_tracer import note_calls
from fuzzing.backends.shared.stderr_capture import capture_stderr
from fuzzing.backends.tinygrad import converters
from fuzzing.cases.programs import Program
from fuzzing.cases.values import RAW_DTYPES, STRING, Absent, Sequence, Tensor, Value

#: The value of DEV that selects a renderer of the CPU device; clang is the first that works.
_RENDERERS = {"clang": "CPU", "x86": "CPU:X86"}
#: Lazy tensors, lists of them, or None, by output name in the model's order.
_Outputs = Dict[str, Any]


class ClangError(Exception):
    """The errors of clang for a generated kernel, without their places in it."""


@register
class Tinygrad(Backend):
    """`tinygrad.nn.onnx.OnnxRunner` on the CPU device.

    convert reads the model and builds lazy tensors; constants that an operator needs as Python values are
    computed there. compile realizes the outputs: tinygrad schedules, generates and compiles kernels and puts
    them on its queue. run waits for the queue and copies the outputs.

    Compiled kernels are kept in `CACHEDB`, by source and clang's arguments, beyond the process. ONNX's 3,390
    node tests take 0.22 s of a core each, four fifths of it in compile.

    options: `optimization`: `none` is NOOPT=1, kernels without the hand-written optimizations; `renderer`:
    what makes machine code, tinygrad's default `clang` or its assembler `x86`.
    """

    name: ClassVar[str] = "tinygrad"
    package: ClassVar[str] = "tinygrad"
    import_name: ClassVar[str] = "tinygrad"
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {
        "optimization": ("default", "none"),
        "renderer": ("clang", "x86"),
    }
    reloadable: ClassVar[bool] = True
    ablation: ClassVar[Tuple[AblationLevel, ...]] = (
        AblationLevel({"optimization": "none"}, "importer, scheduler and code generator"),
        AblationLevel({"optimization": "default"}, "kernel optimizations"),
    )
    # One case at a time and one worker per core: more threads would only compete, and a process with a pool
    # of compilers (PARALLEL) cannot be forked.
    environment: ClassVar[Dict[str, str]] = {
        "CACHEDB": "{cache}/kernels.db",
        "PARALLEL": "0",
        "NUM_CPU_THREADS": "1",
    }
    programs: ClassVar[Tuple[str, ...]] = ("clang",)
    packages: ClassVar[Tuple[str, ...]] = ("tinygrad", "numpy")
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("NotImplementedError", r"op='(\w+)' is not supported", r"no \1"),
        UnsupportedPattern("NotImplementedError", r"([^\n]+)", r"\1"),
        UnsupportedPattern(
            "ValueError", r"(?<!\d)(\d+) is not a valid OnnxDataType", r"no element type \1 of ONNX"
        ),
        UnsupportedPattern(
            "ValueError", r"(?<!\d)(\d+) is not a valid AttributeType", r"no attributes of type \1 of ONNX"
        ),
        UnsupportedPattern("ValueError", r"'([\w.]+)' is not a valid Domain", r"no operators of \1"),
        UnsupportedPattern(
            "ValueError", r"invalid ((?:coordinate_transformation|nearest)_mode=\S+)", r"no \1"
        ),
        UnsupportedPattern(
            "TypeError",
            r"<locals>\.(\w+)\(\) got an unexpected keyword argument '(\w+)'",
            r"no attribute \2 of \1",
        ),
        UnsupportedPattern("ImportError", r"(?<![^\n])([^\n]+ must be installed for [^\n]+)", r"\1"),
        UnsupportedPattern("RuntimeError", r"sequence must be homogeneous", "no sequences of several shapes"),
        UnsupportedPattern(
            "ValueError|AssertionError|RuntimeError",
            r"(?<![^\n])([^\n]*\b(?:not supported|does not support|only supports?)\b[^\n]*)",
            r"\1",
        ),
        # mixin/op.py, `_pad_circular`: ONNX's Pad wraps as often as it is told.
        UnsupportedPattern(
            "ValueError",
            r"Padding value causes wrapping around more than once",
            "no padding by several lengths",
        ),
        UnsupportedPattern("AssertionError", r"(only float32 is supported)", r"\1"),
        # Numbers that Python has to read, such as bounds and steps.
        UnsupportedPattern(
            "AssertionError",
            r"(?:no (?:fmt|np) dtype for |\Abdtype=)dtypes\.(\w+)(?: has None fmt)?",
            r"no \1 numbers in Python",
        ),
        UnsupportedPattern("AssertionError", r"\ATODO\Z", "marked as TODO in its source"),
        # Only a newer clang (17) computes with bfloat16 on every x86-64 processor.
        UnsupportedPattern("ClangError", r"__bf16", "this machine's clang does not compute with bfloat16"),
    )

    @classmethod
    def requirements(cls, version: str) -> List[str]:
        """A worker needs numpy, which tinygrad does not require."""
        return [f"tinygrad=={version}", "numpy"]

    def load(self, device: str, options: Dict[str, Any]) -> None:  # noqa: ARG002
        """Imports tinygrad, opens the CPU device and compiles a first kernel.

        Raises RuntimeError if there is no clang.
        """
        resolved = self.resolve_options(options)
        if shutil.which("clang") is None:
            raise RuntimeError(
                "tinygrad compiles its kernels with clang, which is not on PATH; install it, such as with "
                "`apt-get install clang`"
            )
        os.environ["DEV"] = _RENDERERS[resolved["renderer"]]
        import tinygrad
        from tinygrad import helpers
        from tinygrad.nn import onnx

        self._tinygrad: Any = tinygrad
        self._onnx: Any = onnx
        helpers.NOOPT.value = int(resolved["optimization"] == "none")
        (self._tinygrad.Tensor([1.0]) + 1).numpy()
        # A connection of SQLite must not be carried into a forked process (sqlite.org/howtocorrupt.html).
        connection = getattr(helpers, "_db_connection", None)
        if connection is not None:
            connection.close()
            helpers._db_connection = None

    def convert(self, program: Program, inputs: Named) -> _Outputs:
        """The outputs as lazy tensors."""
        tensor = self._tinygrad.Tensor
        feeds = {name: self._argument(value) for name, value in inputs}
        with note_calls(self.instrumentation, converters.FRONTEND, converters.onnx_converter):
            # The importer reads a model from a tensor of bytes; PYTHON is the device of host memory.
            runner = self._onnx.OnnxRunner(tensor(program.to_bytes(), dtype="uint8", device="PYTHON"))
            outputs: _Outputs = runner({name: feeds[name] for name in runner.graph_inputs})
            return outputs

    def compile(self, model: _Outputs) -> _Outputs:
        """The graph, its kernels compiled and queued."""
        tensors = [one for output in model.values() for one in _tensors(output)]
        if not tensors:
            return model
        with _clang_errors():
            tensors[0].realize(*tensors[1:])
        return model

    def run(self, executable: _Outputs, inputs: Named) -> Named:  # noqa: ARG002 - the graph holds them
        """The outputs' values; reading bfloat16 compiles another kernel."""
        with _clang_errors():
            return [(name, self._value(output)) for name, output in executable.items()]

    def _argument(self, value: Value) -> Any:
        if isinstance(value, Sequence):
            return [self._argument(item) for item in value.items]
        if not isinstance(value, Tensor):
            return None
        dtypes, array = self._tinygrad.dtypes, value.array()
        if value.dtype == "bfloat16":
            return self._tinygrad.Tensor(array.copy()).bitcast(dtypes.bfloat16)
        if value.dtype in RAW_DTYPES or value.dtype == STRING or value.dtype.startswith("complex"):
            raise Unsupported(f"tinygrad's ONNX importer takes no {value.dtype} tensors")
        return self._tinygrad.Tensor(np.array(array))

    def _value(self, found: Any) -> Value:
        """An output; a tensor's element type is that of tinygrad."""
        if found is None:
            return Absent()
        if isinstance(found, (list, tuple)):
            return Sequence(tuple(self._tensor(item) for item in found))
        return self._tensor(found)

    def _tensor(self, found: Any) -> Tensor:
        if not isinstance(found, self._tinygrad.Tensor):
            return Tensor.of(np.array(found))
        if found.dtype == self._tinygrad.dtypes.bfloat16:
            return Tensor.of(found.bitcast(self._tinygrad.dtypes.uint16).numpy(), "bfloat16")
        return Tensor.of(np.array(found.numpy()))


@contextlib.contextmanager
def _clang_errors() -> Iterator[None]:
    """Raises ClangError where clang fails: the exception of `subprocess` does not have its messages."""
    try:
        with capture_stderr() as stderr:
            yield
    except subprocess.CalledProcessError as error:
        raise ClangError(_errors(stderr.read().decode(errors="replace")) or str(error)) from error


def _tensors(output: Any) -> List[Any]:
    """The lazy tensors of an output: one, a sequence, or none; Size gives a number of Python."""
    found = output if isinstance(output, (list, tuple)) else [output]
    return [one for one in found if hasattr(one, "realize")]


def _errors(stderr: str) -> str:
    """The errors among clang's messages, such as "<stdin>:2:10: error: …", one a line."""
    found = [error for line in stderr.splitlines() for _, mark, error in [line.partition(" error: ")] if mark]
    return "\n".join(dict.fromkeys(found))
