"""IREE, releases 3.6 and later: its ONNX importer, its compiler for CPUs and its virtual machine."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, NamedTuple, Tuple

import numpy as np

from fuzzing.backends.base import AblationLevel, Backend, Named, Unsupported, UnsupportedPattern, register
from fuzzing.backends.iree import bisectable_passes
from fuzzing.cases.programs import Program
from fuzzing.cases.values import CARRIERS, Tensor, Value

#: Element types by ONNX name: onnx.TensorProto.DataType (onnx.proto) and iree.runtime.HalElementType. Its
#: runtime has no strings, and packs 4- and 2-bit types.
_ELEMENTS: Dict[str, Tuple[int, str]] = {
    "float32": (1, "FLOAT_32"),
    "uint8": (2, "UINT_8"),
    "int8": (3, "SINT_8"),
    "uint16": (4, "UINT_16"),
    "int16": (5, "SINT_16"),
    "int32": (6, "SINT_32"),
    "int64": (7, "SINT_64"),
    "bool": (9, "BOOL_8"),
    "float16": (10, "FLOAT_16"),
    "float64": (11, "FLOAT_64"),
    "uint32": (12, "UINT_32"),
    "uint64": (13, "UINT_64"),
    "complex64": (14, "COMPLEX_64"),
    "complex128": (15, "COMPLEX_128"),
    "bfloat16": (16, "BFLOAT_16"),
    "float8_e4m3fn": (17, "FLOAT_8_E4M3_FN"),
    "float8_e4m3fnuz": (18, "FLOAT_8_E4M3_FNUZ"),
    "float8_e5m2": (19, "FLOAT_8_E5M2"),
    "float8_e5m2fnuz": (20, "FLOAT_8_E5M2_FNUZ"),
    "float8_e8m0fnu": (24, "FLOAT_8_E8M0_FNU"),
}
#: End of the type of a float64 tensor in the torch dialect, as in !torch.vtensor<[2,3],f64>.
_FLOAT64 = "],f64>"
_DTYPES = {number: name for name, (number, _) in _ELEMENTS.items()}


class _Imported(NamedTuple):
    """A model in the torch dialect's ONNX operators, with its function's inputs and outputs."""

    text: str
    function: str
    inputs: List[str]
    outputs: List[Tuple[str, str]]  # name, element type


class _Loaded(NamedTuple):
    """A compiled module and its context."""

    imported: _Imported
    context: Any
    function: Any


class IreeError(Exception):
    """The compiler's diagnostics before it failed, innermost first."""


@register
class Iree(Backend):
    """`iree.compiler.extras.onnx_importer`, a compiler session in this process, and `iree.runtime`.

    convert runs ONNX's shape inference and the importer, like `iree-import-onnx`; compile is `iree-compile`
    for the CPU. One session serves one case, since MLIR keeps every type it has created. The module is passed
    as text: passing it in memory (`Invocation.import_module`) crashes in 3.13.

    By default the compiler demotes float64 to float32 but keeps the buffers' types; a model with float64
    tensors is compiled without that. Others keep it, because otherwise their scalars, which the torch dialect
    holds in float64, cannot be lowered either (MaxPool, in 3.13).

    options: `optimization`, `--iree-opt-level`; `cpu`, the processor to compile for. O0 and `generic` are the
    defaults of `iree-compile`; `generic` gives the same code on every machine, `host` uses all of this one.
    """

    name: ClassVar[str] = "iree"
    package: ClassVar[str] = "iree-base-compiler"
    import_name: ClassVar[str] = "iree.compiler"
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {
        "optimization": ("O0", "O1", "O2", "O3"),
        "cpu": ("generic", "host"),
    }
    reloadable: ClassVar[bool] = True
    ablation: ClassVar[Tuple[AblationLevel, ...]] = (
        AblationLevel({"optimization": "O0"}, "importer, lowering and code generation"),
        AblationLevel({"optimization": "O1"}, "optimizer, level O1"),
        AblationLevel({"optimization": "O2"}, "optimizer, level O2"),
        AblationLevel({"optimization": "O3"}, "optimizer, level O3"),
    )
    has_native_translators: ClassVar[bool] = True
    packages: ClassVar[Tuple[str, ...]] = ("iree-base-compiler", "iree-base-runtime", "onnx", "numpy")
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = (
        # MLIR's conversion has no rule for this operation or form. Below the torch dialect the compiler has
        # accepted the program, and the same message is a compiler failure.
        UnsupportedPattern(
            "IreeError",
            r"failed to legalize operation 'torch\.operator' that was explicitly marked illegal: "
            r"[^\n]*?\"(onnx\.\w+)\"",
            r"no lowering of \1 in this form",
        ),
        UnsupportedPattern(
            "IreeError",
            r"failed to legalize operation '(torch\.[\w.]+)' that was explicitly marked illegal",
            r"no lowering of \1 in this form",
        ),
        # Operations of the torch dialect left where all must be converted; the first is seldom the cause.
        UnsupportedPattern(
            "IreeError",
            r"\Afailed to legalize operation '(torch\.[\w.]+)': ",
            r"no lowering of the torch operators, \1 first",
        ),
        UnsupportedPattern("IreeError", r"unhandled torch type: '([^\n]+)'", r"no values of type \1"),
        # How torch-mlir's lowerings begin what they lack. Loops are distributed below the torch dialect.
        UnsupportedPattern(
            "IreeError", r"\A([Uu]nimplemented: (?!Distribution )[^\n]+|unsupported: aten\.[^\n]+)", r"\1"
        ),
        UnsupportedPattern("RuntimeError", r"FAILED_PRECONDITION; unimplemented: ([^\n;]+)", r"not where \1"),
        UnsupportedPattern("OnnxImportError", r"(does not support [^\n:.]+)", r"its importer \1"),
        UnsupportedPattern("OnnxImportError", r"(Unsupport(?:ed)? [^\n]+)", r"\1"),
        UnsupportedPattern("OnnxImportError", r"(Unhandled ONNX [^\n:]+)", r"\1"),
        UnsupportedPattern(
            "OnnxImportError",
            r"An immediate value for '([^'\n]+)' was required",
            r"no \1 known only when it runs",
        ),
        UnsupportedPattern(
            "OnnxImportError",
            r"Unknown ONNX tensor element type(?: to numpy dtype mapping)?: (\w+)",
            r"no element type \1 of ONNX",
        ),
    )

    @classmethod
    def requirements(cls, version: str) -> List[str]:
        """Compiler and runtime are two distributions of one version; the importer needs onnx."""
        return [f"iree-base-compiler=={version}", f"iree-base-runtime=={version}", "onnx"]

    def load(self, device: str, options: Dict[str, Any]) -> None:  # noqa: ARG002
        """Imports both halves and opens the synchronous CPU device, which starts no threads."""
        import iree.runtime
        import onnx
        from iree.compiler import api
        from iree.compiler.extras import onnx_importer

        resolved = self.resolve_options(options)
        self._onnx, self._importer, self._api, self._runtime = onnx, onnx_importer, api, iree.runtime
        self._config = iree.runtime.Config("local-sync")
        self._flags = [
            f"--iree-opt-level={resolved['optimization']}",
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            f"--iree-llvmcpu-target-cpu={resolved['cpu']}",
        ]

    def convert(self, program: Program, inputs: Named) -> _Imported:  # noqa: ARG002
        """The model as MLIR text."""
        onnx = self._onnx
        model = onnx.load_from_string(program.to_bytes())
        onnx.checker.check_model(model)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        session = self._api.Session()
        info = self._importer.ModelInfo(model)
        module = info.create_module(context=session.context).operation
        self._importer.NodeImporter.define_function(info.main_graph, module).import_all()
        text = str(module.get_asm())
        outputs = [(out.name, _DTYPES.get(out.type.tensor_type.elem_type, "")) for out in model.graph.output]
        return _Imported(text, model.graph.name, list(info.main_graph.input_map), outputs)

    def compile(self, model: _Imported) -> _Loaded:
        """The module's byte code, loaded."""
        bisectable_passes.note_phases(
            self.instrumentation, lambda phase: self._invoked(model, [], phase) is not None
        )
        errors: List[str] = []
        invocation = self._invoked(model, errors)
        if invocation is None:
            raise IreeError("\n".join(errors) or "the compiler failed and gave no reason")
        output = self._api.Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        code = bytes(output.map_memory())
        runtime, instance = self._runtime, self._config.vm_instance
        module = runtime.VmModule.copy_buffer(instance, code)
        context = runtime.VmContext(instance, [*self._config.default_vm_modules, module])
        return _Loaded(model, context, module.lookup_function(model.function))

    def _invoked(self, model: _Imported, errors: List[str], phase: str = "") -> Any:
        """A session's invocation that has compiled the model, up to a phase if one is named; None if it
        failed.

        Its diagnostics are added to `errors`.
        """
        session = self._api.Session()
        demote = "false" if _FLOAT64 in model.text else "true"
        session.set_flags(f"--iree-input-demote-f64-to-f32={demote}", *self._flags)
        session.set_flags(*bisectable_passes.disabling_flags(session, self.instrumentation))
        handler = session.context.attach_diagnostic_handler(lambda found: _note(found, errors))
        invocation = session.invocation()
        if phase:
            bisectable_passes.compile_to(invocation, phase)
        source = self._api.Source.wrap_buffer(session, model.text.encode() + b"\0")
        done = invocation.parse_source(source) and invocation.execute()
        handler.detach()
        return invocation if done else None

    def run(self, executable: _Loaded, inputs: Named) -> Named:
        """Calls the function on buffers of exactly the inputs' types."""
        given = dict(inputs)
        wanted = executable.imported
        arguments = self._runtime.VmVariantList(len(wanted.inputs))
        for name in wanted.inputs:
            arguments.push_ref(self._view(given[name]).ref)
        results = self._runtime.VmVariantList(len(wanted.outputs))
        executable.context.invoke(executable.function, arguments, results)
        return [(name, self._value(results, at, dtype)) for at, (name, dtype) in enumerate(wanted.outputs)]

    def _view(self, value: Value) -> Any:
        """A buffer view of a tensor; raw element types keep their bits."""
        if not isinstance(value, Tensor):
            raise Unsupported("IREE's ONNX functions take no sequences or optionals")
        if value.dtype not in _ELEMENTS:
            raise Unsupported(f"IREE's runtime takes no {value.dtype} tensors")
        runtime = self._runtime
        device = self._config.device
        return device.allocator.allocate_buffer_copy(
            memory_type=runtime.MemoryType.DEVICE_LOCAL,
            allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
            device=device,
            buffer=value.array(),
            element_type=getattr(runtime.HalElementType, _ELEMENTS[value.dtype][1]),
        )

    def _value(self, results: Any, at: int, dtype: str) -> Tensor:
        """One result with the model's declared type: IREE's own has no sign."""
        if not dtype:
            raise Unsupported("IREE's runtime gives no tensors of this output's type")
        view = results.get_as_object(at, self._runtime.HalBufferView)
        array = view.map().asarray(view.shape, np.dtype(CARRIERS[dtype]))
        return Tensor.of(np.array(array), dtype)


def _note(found: Any, errors: List[str]) -> bool:
    """Keeps an error's text, and only those of its notes that are messages, not program text."""
    if str(found.severity).endswith("ERROR"):
        errors.append(found.message)
    return True
