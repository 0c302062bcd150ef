"""ONNX Runtime."""

from __future__ import annotations

from typing import Any, ClassVar, List, NamedTuple

import numpy as np

from fuzzing.backends.base import (
    NOT_PYTHONS,
    AblationLevel,
    Backend,
    Named,
    Unsupported,
    UnsupportedPattern,
    register,
)
from fuzzing.backends.onnxruntime import bisectable_passes
from fuzzing.backends.shared import onnx_models
from fuzzing.cases.programs import Program
from fuzzing.cases.values import RAW_DTYPES, Absent, Sequence, Tensor, Value

#: onnx.TensorProto.DataType of the types numpy lacks (onnx.proto), and ONNX Runtime's names for them.
_ELEMENT_TYPES = {
    "bfloat16": (16, "tensor(bfloat16)"),
    "float8_e4m3fn": (17, "tensor(float8e4m3fn)"),
    "float8_e4m3fnuz": (18, "tensor(float8e4m3fnuz)"),
    "float8_e5m2": (19, "tensor(float8e5m2)"),
    "float8_e5m2fnuz": (20, "tensor(float8e5m2fnuz)"),
}
_NAMES = {element: (number, name) for name, (number, element) in _ELEMENT_TYPES.items()}
_FATAL = 4  # errors that it logs are also raised
#: Levels by their names here, with GraphOptimizationLevel's, and the component each adds to the previous one.
_LEVELS = {
    "disabled": ("ORT_DISABLE_ALL", "kernels"),
    "basic": ("ORT_ENABLE_BASIC", "graph optimiser, level basic"),
    "extended": ("ORT_ENABLE_EXTENDED", "graph optimiser, level extended"),
    "all": ("ORT_ENABLE_ALL", "graph optimiser, level all (layouts)"),
}


class _Model(NamedTuple):
    """A ModelProto's bytes; `by_position` if its output names differ from the program's."""

    data: bytes
    by_position: bool


class _Loaded(NamedTuple):
    """A session and its output names."""

    session: Any
    outputs: List[str]


@register
class OnnxRuntime(Backend):
    """`onnxruntime.InferenceSession`. Its constructor parses, optimizes and plans at once, so all of that is
    the compile phase, and convert returns the bytes.

    Its parts are the optimizers that log a change of the graph (`disabled_optimizers` disables them by that
    name), the prepacking of weights and the reuse of memory.

    options: `optimization`, the level of its graph optimizer.
    """

    name: ClassVar[str] = "onnxruntime"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"
    kinds: ClassVar[tuple[str, ...]] = onnx_models.KINDS
    captured: ClassVar[tuple[str, ...]] = onnx_models.CAPTURED
    exporters: ClassVar[dict[str, tuple[str, ...]]] = onnx_models.EXPORTERS
    devices: ClassVar[tuple[str, ...]] = ("CPU", "CUDA")
    options: ClassVar[dict[str, tuple[str, ...]]] = {
        "optimization": ("all", "disabled", "basic", "extended"),
    }
    reloadable: ClassVar[bool] = True
    ablation: ClassVar[tuple[AblationLevel, ...]] = tuple(
        AblationLevel({"optimization": level}, component) for level, (_, component) in _LEVELS.items()
    )
    # cudaError_t's after which a context is unusable (cuda_runtime_api.h: "the only way to continue …").
    sticky: ClassVar[tuple[str, ...]] = (
        r"CUDA (?:failure|error) (?:700|702|709|710|713|714|715|716|717|718|719)\b",
        r"CUDA error cudaError(?:IllegalAddress|LaunchTimeout|Assert|LaunchFailure|MisalignedAddress)",
    )
    environment: ClassVar[dict[str, str]] = {"OMP_NUM_THREADS": "1", **onnx_models.ENVIRONMENT}
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "numpy", "keras", "torch", "onnxscript")
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern(
            "NotImplemented", r"Could not find an implementation for (\w+)\(", r"no kernel for \1"
        ),
        UnsupportedPattern("NotImplemented", r"NOT_IMPLEMENTED : (.*)", r"\1"),
        UnsupportedPattern(".*", r"is not a registered function/op", "no such operator"),
        UnsupportedPattern(
            ".*", r"No Op registered for (\w+) with domain_version of (\d+)", r"no \1 of opset \2"
        ),
        UnsupportedPattern(".*", r"No opset import for domain '([^']*)'", r"no operators of the domain \1"),
        UnsupportedPattern(
            ".*",
            r"ONNX Runtime only \*guarantees\* support for models stamped with official released onnx opset",
            "opset newer than this release",
        ),
        UnsupportedPattern(".*", r"[Uu]nsupported model IR version: (\d+)", r"no models of IR version \1"),
        UnsupportedPattern(
            "InvalidGraph", r"Unrecognized attribute: (\w+) for operator (\w+)", r"no \1 of \2"
        ),
        UnsupportedPattern(".*", r"\b(\w+) operator does not support (\w+) yet", r"no kernel for \1 of \2"),
        # ONNX's text lets the values of a body have no shape.
        UnsupportedPattern(
            ".*",
            r"subgraph input \d+ has unknown shape|Subgraph must have the shape set for all outputs",
            "no bodies without shapes",
        ),
        # What its own fusions lack they have to leave alone.
        UnsupportedPattern(
            ".*",
            rf"(?m)^{NOT_PYTHONS}((?![^\n]* fusion\b)[^\n]*(?:"
            r"\b[Uu]nsupported\b"
            r"|\bnot (?:yet |currently )?(?:registered or )?(?:supported|implemented)\b"
            r"|\b[Oo]nly supports?\b|\bsupports? only\b|\bimplemented only\b|\b[Oo]nly implemented\b"
            # Of an attribute that ONNX forbids in no mode: Resize's `exclude_outside`.
            r"|\bcan be set to \S+ when\b"
            r"|\b[Dd]o(?:es)?(?: not|n't) (?:yet )?(?:support|have an implementation)\b"
            r"|\bnot support\b|\bnot (?:one of the|a) supported\b|\bunimplemented\b"
            r"|\b[Ss]upport(?:ing only)? 2-D matrices\b|\bnot handled now\b|\bis not currently registered\b"
            r"|\bmust be (?:a )?constant\b|\bshape must be known\b"
            r"|\b[Oo]nly works on\b|\bonly outputs\b|\bexceeds? (?:the )?supported \w+ (?:indexing )?range\b"
            r"|\b[Oo]nly [^\n]{1,120}\bsupported\b"
            r")[^\n]*)",
            r"\1",
        ),
        # Raised by its Python API when reading an output.
        UnsupportedPattern(
            "RuntimeError", r"No corresponding Numpy type for Tensor Type\. (\w+)", r"no \1 outputs"
        ),
        # Caused by the machine: the compiler requests a locale that is not installed.
        UnsupportedPattern(
            ".*", r"Failed to construct locale with name:(\S+)", r"this machine lacks the locale \1"
        ),
        UnsupportedPattern(
            "InvalidGraph",
            r"Type '(tensor\(\w+\))' of input parameter \(.*\) of operator \((\w+)\) in node .* is invalid",
            r"\2 does not take \1",
        ),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:
        """Imports onnxruntime and sets the session's options."""
        import onnxruntime

        onnxruntime.set_default_logger_severity(_FATAL)
        self._ort = onnxruntime
        level, _ = _LEVELS[self.resolve_options(options)["optimization"]]
        self._level = getattr(onnxruntime.GraphOptimizationLevel, level)
        self._options = self._new_options()
        provider = f"{device}ExecutionProvider"
        if provider not in onnxruntime.get_available_providers():
            raise RuntimeError(f"this onnxruntime has no {provider}: for CUDA install onnxruntime-gpu")
        # Nodes that the provider lacks run on the CPU, as for every user.
        self._providers = [provider, *(["CPUExecutionProvider"] if device != "CPU" else [])]

    def _new_options(self) -> Any:
        options = self._ort.SessionOptions()
        options.log_severity_level = _FATAL
        # One case at a time and one worker per core: more threads would only compete.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.graph_optimization_level = self._level
        return options

    def convert(self, program: Program, inputs: Named) -> _Model:
        """The model's bytes: ONNX Runtime has no conversion step."""
        return _Model(onnx_models.model_bytes(program, inputs), program.kind != "OnnxModel")

    def run_capture(self, program: Program, inputs: Named) -> Named:
        """Keras' export to ONNX."""
        return onnx_models.exported_model(program, inputs)

    def compile(self, model: _Model) -> _Loaded:
        """A session."""
        how = self.instrumentation
        if how.record or how.coverage or how.disabled:
            session = self._compile_instrumented(model)
        else:
            session = self._ort.InferenceSession(model.data, self._options, providers=self._providers)
        names = [out.name for out in session.get_outputs()]
        return _Loaded(session, onnx_models.positional_names(len(names)) if model.by_position else names)

    def _compile_instrumented(self, model: _Model) -> Any:
        """A session without the disabled parts; the parts that change the graph are noted."""
        options = self._new_options()
        disabled = bisectable_passes.apply_switches(options, self.instrumentation)
        with bisectable_passes.note_optimizers(options, self.instrumentation):
            return self._ort.InferenceSession(
                model.data, options, providers=self._providers, disabled_optimizers=disabled
            )

    def run(self, executable: _Loaded, inputs: Named) -> Named:
        """Runs the session; inputs that it has optimized away are left out."""
        session = executable.session
        wanted = {arg.name for arg in session.get_inputs()}
        given = [(name, value) for name, value in inputs if name in wanted]
        if _has_raw(value for _, value in given) or any(out.type in _NAMES for out in session.get_outputs()):
            found = self._run_raw(session, given)
        else:
            results = session.run(None, {name: _plain(value) for name, value in given})
            found = [_value(result) for result in results]
        return list(zip(executable.outputs, found))

    def _run_raw(self, session: Any, inputs: Named) -> list[Value]:
        """Runs with element types that numpy lacks, by OrtValues whose memory is read as raw integers."""
        feeds = {name: self._ort_value(value) for name, value in inputs}
        names = [out.name for out in session.get_outputs()]
        return [self._read(result) for result in session.run_with_ort_values(names, feeds)]

    def _ort_value(self, value: Value) -> Any:
        if not isinstance(value, Tensor):
            raise Unsupported("onnxruntime's Python API takes no sequences beside bfloat16 or float8 tensors")
        if value.dtype in RAW_DTYPES:
            if value.dtype not in _ELEMENT_TYPES:
                raise Unsupported(f"onnxruntime's Python API takes no {value.dtype} tensors")
            number = _ELEMENT_TYPES[value.dtype][0]
            return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.array().copy(), number)
        return self._ort.OrtValue.ortvalue_from_numpy(value.array())

    def _read(self, result: Any) -> Value:
        element = result.data_type()
        if element not in _NAMES:
            return _value(result.numpy())
        import ctypes

        dtype = _NAMES[element][1]
        shape = tuple(result.shape())
        width = 2 if dtype == "bfloat16" else 1
        count = int(np.prod(shape, dtype=np.int64)) * width
        return Tensor(dtype, shape, ctypes.string_at(result.data_ptr(), count) if count else b"")


def _has_raw(values: Any) -> bool:
    return any(isinstance(value, Tensor) and value.dtype in RAW_DTYPES for value in values)


def _plain(value: Value) -> Any:
    if isinstance(value, Tensor):
        return value.array()
    if isinstance(value, Sequence):
        if _has_raw(value.items):
            raise Unsupported(
                "onnxruntime's Python API takes no sequences of bfloat16, float8 or 4-bit tensors"
            )
        return [item.array() for item in value.items]
    return None


def _value(result: Any) -> Value:
    if result is None:
        return Absent()
    if isinstance(result, list):
        return Sequence(tuple(Tensor.of(item) for item in result))
    return Tensor.of(result)
