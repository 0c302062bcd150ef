"""Apache TVM, releases 0.25 and later: the Relax frontends, compiler and virtual machine."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, NamedTuple, Tuple

import numpy as np

from fuzzing.backends.base import (
    NOT_PYTHONS,
    AblationLevel,
    Backend,
    Instrumentation,
    Named,
    Unsupported,
    UnsupportedPattern,
    register,
)
from fuzzing.backends.shared import onnx_models, torch_graphs, torch_programs
from fuzzing.backends.shared.call_tracer import note_calls
from fuzzing.backends.tvm import bisectable_passes
from fuzzing.cases.programs import Program
from fuzzing.cases.values import RAW_DTYPES, STRING, Sequence, Tensor, Value

#: Operators whose kernels read float64 elements as float32 (topi/image/resize.py, 0.27: `.astype("float")`),
#: by ONNX's and torch's names.
_RESIZED = (
    *("Resize", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "interpolate", "upsample"),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
)
#: Element types that TVM's runtime has; complex numbers, strings and packed types are not among them.
_RAW = tuple(name for name in sorted(RAW_DTYPES) if name.startswith(("bfloat16", "float8")))


#: Begins a line in which TVM says what it lacks. A constant of a wrong type (IntImm and FloatImm), an
#: operator of Python on an expression and what fusion put into a function are of its own making.
_OWN = (
    rf"(?im)^{NOT_PYTHONS}"
    r"(?![^\n]*(?:\b(?:Int|Float)Imm supports only|\bOperator overloading\b|\bin primitive functions?\b))"
)


class _Model(NamedTuple):
    """A Relax module, or a virtual machine that holds it compiled; its inputs, and the outputs' names.

    outputs  [] if their number is known only at run time
    """

    module: Any
    feeds: List[Value]
    outputs: List[str]


@register
class Tvm(Backend):
    """A Relax frontend, `tvm.compile`, and the Relax virtual machine.

    Weights stay constants (`keep_params_in_input` is off), so that constants are folded.

    options: `pipeline`: `zero` first runs TVM's pipeline of that name, which legalizes, folds constants and
    fuses, as in its guides; `default` is `tvm.compile` alone, which fuses nothing on CPUs. `opt`: the level
    of its PassContext, by default 2 as in TVM. `llvm`: the level of LLVM's optimizer, by default as in TVM.
    `cpu`: the processor to compile for; `generic`, TVM's default, gives the same code on every machine,
    `host` uses all of this one.
    """

    name: ClassVar[str] = "tvm"
    package: ClassVar[str] = "apache-tvm"
    import_name: ClassVar[str] = "tvm"
    kinds: ClassVar[Tuple[str, ...]] = (*onnx_models.KINDS, "TorchCall", "TorchProgram")
    captured: ClassVar[Tuple[str, ...]] = (*onnx_models.CAPTURED, "TorchCall", "TorchProgram")
    exporters: ClassVar[Dict[str, Tuple[str, ...]]] = onnx_models.EXPORTERS
    devices: ClassVar[Tuple[str, ...]] = ("CPU", "CUDA")
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {
        "pipeline": ("zero", "default"),
        "opt": ("2", "0", "1", "3"),
        "llvm": ("default", "0"),
        "cpu": ("generic", "host"),
    }
    reloadable: ClassVar[bool] = True
    ablation: ClassVar[Tuple[AblationLevel, ...]] = (
        AblationLevel({"pipeline": "default", "opt": "0", "llvm": "0"}, "frontend and legalisation"),
        AblationLevel({"pipeline": "default", "opt": "0", "llvm": "default"}, "LLVM's optimizer"),
        AblationLevel({"pipeline": "default", "opt": "2", "llvm": "default"}, "passes of level 1 and 2"),
        AblationLevel({"pipeline": "zero", "opt": "0", "llvm": "default"}, "constant folding"),
        AblationLevel({"pipeline": "zero", "opt": "2", "llvm": "default"}, "operator fusion"),
    )
    sticky: ClassVar[Tuple[str, ...]] = (r"CUDA_ERROR_(?:ILLEGAL|LAUNCH|MISALIGNED|HARDWARE)\w*",)
    # One case at a time and one worker per core: more threads would only compete.
    environment: ClassVar[Dict[str, str]] = {
        "TVM_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        **onnx_models.ENVIRONMENT,
    }
    packages: ClassVar[Tuple[str, ...]] = (
        "apache-tvm",
        "apache-tvm-ffi",
        "onnx",
        "numpy",
        "torch",
        "keras",
        "onnxscript",
    )
    narrow_operators: ClassVar[Dict[str, Dict[str, str]]] = {
        name: {"float64": "float32"} for name in _RESIZED
    }
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("OpNotImplemented", r"not supported for frontend ONNX: ([^\n]+)", r"no \1"),
        UnsupportedPattern("AssertionError", r"Unsupported function types \[([^\n]+)\]", r"no \1"),
        UnsupportedPattern("NotImplemented", r"([^\n]+)", r"\1"),
        UnsupportedPattern("ValueError", r"unknown dtype `object`", "no string tensors"),
        UnsupportedPattern("ValueError", r"unknown dtype `(\w+)`", r"no \1 tensors"),
        UnsupportedPattern(
            "ValueError", r"cannot handle ShapeExpr inputs", "a computed shape as this operator's input"
        ),
        UnsupportedPattern(
            "ValueError|AssertionError", r"(?<!\w)(\w+) must be a constant", r"no \1 known only when it runs"
        ),
        UnsupportedPattern(
            "ValueError|AssertionError", r"[Oo]nly constant (\w+)", r"no \1 known only when they run"
        ),
        # Its runtime's message when it allocates a tensor.
        UnsupportedPattern(
            "InternalError", r"Check failed: dtype\.bits % 8 == 0 \((\d)", r"no tensors of \1 bits"
        ),
        UnsupportedPattern("TypeError", r"(?<!\w)(\w+ param datatype should be one of [^\n]+)", r"\1"),
        UnsupportedPattern("ValueError", r"\b(\w+ \w+ must be [^\n]{1,200}?) for Relax frontend", r"\1"),
        UnsupportedPattern(
            "TypeError",
            r"\b(\w+(?: op)? requires the input (?:tensor|data|indices) to have (?:float|integer) dtype)"
            r"[^\n]*",
            r"\1",
        ),
        UnsupportedPattern(
            "TypeError",
            r"name=\"relax\.(\w+)\"[^\n]{0,500}\) (requires the input tensor to have \w+ dtype)",
            r"\1 \2",
        ),
        UnsupportedPattern(
            "ValueError", r"\b(\w+ requires (?:a statically (?:known|typed)|known input) [^\n]+)", r"\1"
        ),
        # Relations that shapes known only at run time leave open.
        UnsupportedPattern(
            "ValueError",
            r"(?m)^([^\n]*\bsymbolic (?:dimensions?|extent) [^\n]*|Cannot use -1 in expand [^\n]*unknown)",
            r"\1",
        ),
        # tvm.error: the value of an attribute that the frontend does not take; where ONNX allows it.
        UnsupportedPattern("OpAttributeInvalid", r"(Value [^\n]+ is invalid[^\n]*)", r"\1"),
        # Ranks and types for which a converter is written, where the operator has more.
        UnsupportedPattern(
            "ValueError",
            r"\b((?:scaled_dot_product_attention|AffineGrid|MatMulInteger16) expects (?!two)[^\n]+)",
            r"\1",
        ),
        UnsupportedPattern("KeyError", r"(Unregonized approximate algorithm for \w+)", r"\1"),
        # What it needs to know before it runs: relax/op, topi/utils.py, src/relax/op and src/topi.
        UnsupportedPattern(
            "ValueError|TypeError|InternalError",
            r"(?m)^([^\n]*(?:\brequires? static\b|\brequires? [^\n]{1,200} to (?:be|have)(?: an?)? known\b"
            r"|\bdoes not have an known symbolic shape\b|\bndim of ShapeExpr is expected to a real number\b"
            r"|\bExpect value to be constant (?:int|float)\b|\bmust be constant integers?\b)[^\n]*)",
            r"\1",
        ),
        # Of normalizations (src/relax/op/nn/nn.cc), where bfloat16 is no float.
        UnsupportedPattern("TypeError", r"(expects that data must be float, but got [^\n]+)", r"\1"),
        UnsupportedPattern(
            ".*",
            _OWN
            + r"([^\n]*\b(?:not (?:yet |currently )?supported|unsupported|not support this layout)\b[^\n]*)",
            r"\1",
        ),
        UnsupportedPattern(
            ".*",
            _OWN
            + r"([^\n]*\b(?:do(?:es)? not support|only supports?|supports only|only applies to)\b[^\n]*)",
            r"\1",
        ),
        UnsupportedPattern(
            ".*",
            _OWN
            + r"([^\n]*\b(?:only \S[^\n]{0,80} (?:is|are) (?:currently )?supported|supported only)\b[^\n]*)",
            r"\1",
        ),
    )

    @classmethod
    def requirements(cls, version: str) -> List[str]:
        """The frontend needs onnx, which TVM does not require; 0.25 needs an older foreign function layer."""
        older = ["apache-tvm-ffi==0.1.12"] if version.startswith("0.25.") else []
        return [f"apache-tvm=={version}", *older, "onnx"]

    def load(self, device: str, options: Dict[str, Any]) -> None:
        """Imports tvm and sets target, device and pipeline."""
        import tvm
        from tvm import relax

        resolved = self.resolve_options(options)
        self._tvm, self._relax = tvm, relax
        self._level = int(resolved["opt"])
        self._pipeline = relax.get_pipeline("zero") if resolved["pipeline"] == "zero" else None
        if device == "CUDA":
            self._device, self._target = tvm.cuda(), tvm.target.Target.from_device(tvm.cuda())
        else:
            self._device, self._target = tvm.cpu(), tvm.target.Target(self._cpu_target(resolved))

    def _cpu_target(self, resolved: Dict[str, str]) -> Dict[str, Any]:
        target: Dict[str, Any] = {"kind": "llvm"}
        if resolved["llvm"] != "default":
            target["opt-level"] = int(resolved["llvm"])
        if resolved["cpu"] == "host":
            target["mcpu"] = self._tvm.target.codegen.llvm_get_system_cpu()
        return target

    def is_usable(self) -> bool:
        """Whether torch still dispatches as in a new process."""
        return torch_programs.is_torch_usable()

    def convert(self, program: Program, inputs: Named) -> _Model:
        """The Relax module of an ONNX model, of a Keras program's export, or of torch's ExportedProgram."""
        if program.kind in onnx_models.KINDS:
            return self._from_onnx(program, inputs)
        return _from_torch(program, inputs, self.instrumentation)

    def _from_onnx(self, program: Program, inputs: Named) -> _Model:
        import onnx
        from tvm.relax.frontend.onnx import from_onnx

        model = onnx.load_from_string(onnx_models.model_bytes(program, inputs))
        weights = {tensor.name for tensor in model.graph.initializer}
        given = dict(inputs)
        feeds = [given[port.name] for port in model.graph.input if port.name not in weights]
        names = [out.name for out in model.graph.output]
        with note_calls(self.instrumentation, bisectable_passes.FRONTENDS, bisectable_passes.onnx_converter):
            module = from_onnx(model)
        return _Model(module, feeds, names if program.kind == "OnnxModel" else [])

    def run_capture(self, program: Program, inputs: Named) -> Named:
        """Keras' export to ONNX, or the exported and decomposed program."""
        if program.kind in onnx_models.CAPTURED:
            return onnx_models.exported_model(program, inputs)
        from tvm.relax.frontend.torch import from_exported_program

        return torch_graphs.run_capture(program, inputs, "exported", from_exported_program)

    def compile(self, model: _Model) -> _Model:
        """A virtual machine over the result of `tvm.compile`."""
        module = model.module
        instruments = bisectable_passes.instruments(self._tvm, self.instrumentation)
        context = self._tvm.transform.PassContext(opt_level=self._level, instruments=instruments)
        with context, self._target:
            if self._pipeline is not None:
                module = self._pipeline(module)
            executable = self._tvm.compile(module, self._target)
        return model._replace(module=self._relax.VirtualMachine(executable, self._device))

    def run(self, executable: _Model, inputs: Named) -> Named:  # noqa: ARG002 - convert has put them in order
        """Calls `main`; its results are named in the order of the program's outputs."""
        arguments = [self._argument(value) for value in executable.feeds]
        result = executable.module["main"](*arguments)
        if not executable.outputs:
            results = _flat(result, self._tvm.runtime.Tensor)
            return [
                (name, self._value(found))
                for name, found in zip(onnx_models.positional_names(len(results)), results)
            ]
        results = [result] if len(executable.outputs) == 1 else list(result)
        return [(name, self._value(found)) for name, found in zip(executable.outputs, results)]

    def _argument(self, value: Value) -> Any:
        if not isinstance(value, Tensor):
            raise Unsupported("TVM's ONNX functions take no sequences or optionals")
        array = value.array()
        if value.dtype in RAW_DTYPES:
            import ml_dtypes

            if value.dtype not in _RAW:
                raise Unsupported(f"TVM's runtime takes no {value.dtype} tensors")
            array = array.view(np.dtype(getattr(ml_dtypes, value.dtype)))
        elif value.dtype == STRING or value.dtype.startswith("complex"):
            raise Unsupported(f"TVM's runtime takes no {value.dtype} tensors")
        return self._tvm.runtime.tensor(array, self._device)

    def _value(self, found: Any) -> Value:
        """A result: a tensor, a tuple of tensors, or the shape that Relax may return instead."""
        if isinstance(found, self._tvm.runtime.Tensor):
            return Tensor.of(found.numpy())
        if isinstance(found, self._tvm.runtime.ShapeTuple):
            return Tensor.of(np.array(list(found), np.int64))
        return Sequence(tuple(Tensor.of(item.numpy()) for item in found))


def _from_torch(program: Program, inputs: Named, instrumentation: Instrumentation) -> _Model:
    from tvm.relax.frontend.torch import from_exported_program

    built = torch_programs.build(program)
    exported = torch_graphs.capture(built, inputs, "exported")
    with note_calls(instrumentation, bisectable_passes.FRONTENDS, bisectable_passes.torch_converter):
        module = from_exported_program(exported)
    feeds: List[Value] = [torch_programs.from_torch(tensor) for tensor in built.arrange(inputs)]
    return _Model(module, feeds, [])


def _flat(result: Any, leaf: Any) -> List[Any]:
    """The tensors of nested tuples, in order, without None."""
    if result is None:
        return []
    if isinstance(result, leaf):
        return [result]
    return [tensor for item in result for tensor in _flat(item, leaf)]
