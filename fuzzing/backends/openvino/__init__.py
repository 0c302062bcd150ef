"""OpenVINO, releases 2023.0 and later."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fuzzing.backends.base import Backend, Named, Unsupported, UnsupportedPattern, register
from fuzzing.backends.openvino import bisectable_passes, memory_retention
from fuzzing.backends.shared import onnx_models, torch_graphs, torch_programs
from fuzzing.cases.programs import Program
from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING, Tensor, Value

#: Element types by OpenVINO's name. Packed 4- and 2-bit types are left out.
_RAW = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0"}
#: Exceptions: one class for all, until the frontends got their own (GeneralFailure, ...).
_EXCEPTIONS = r"RuntimeError|\w+Failure"
#: Begins a line that is about the program. What the compiler itself makes (a fused Subgraph, an emitter, an
#: executor) it has to support; a node has no default output if it has several (core/src/node.cpp).
_NOT_INTERNAL = (
    r"(?!Subgraph |\w+Decomposition |(?i:brgemm)|\w+ (?:emitter|executor|pass) |Default output not supported"
    r"|(?:\[ )?(?i:internal) )"
)
_RAW_NAMES = {short: name for name, short in _RAW.items()}
#: The first release whose `convert_model` takes a torch.export.ExportedProgram: 2024.0 says that it does not
#: yet, earlier ones call it an unknown type (their `pytorch_frontend_utils.py`).
_EXPORTED_SINCE = (2024, 1)
#: The newest operator set in the ONNX that each release is built with: `OpSet_Onnx_verN` in its wheel's
#: libopenvino_onnx_frontend.so. Newer operators go to converters of older versions.
_NEWEST_OPSETS = {
    **dict.fromkeys(("2023.0", "2023.1"), 18),
    "2023.2": 19,
    **dict.fromkeys(("2023.3", "2024.0", "2024.1", "2024.2", "2024.3"), 20),
    "2024.4": 21,
    **dict.fromkeys(("2024.5", "2024.6", "2025.0", "2025.1", "2025.2", "2025.3", "2025.4"), 22),
    **dict.fromkeys(("2026.0", "2026.1", "2026.2", "2026.3"), 23),
    "2026.4": 27,
}


class _Model(NamedTuple):
    """A model or a compiled model.

    feeds        values of its inputs, in order; None to match an ONNX model's by name
    by_position  whether its output names differ from the program's
    names        of the inputs that have `feeds`; empty if unknown
    outputs      names of the outputs before compilation, by place
    """

    model: Any
    feeds: Any
    by_position: bool
    names: Sequence[str] = ()
    outputs: Sequence[str] = ()


@register
class OpenVino(Backend):
    """OpenVINO's frontends and `Core.compile_model`.

    ONNX models go through `Core.read_model`, Keras programs through their export to ONNX, torch programs
    through `openvino.convert_model`.

    options: `precision`, the INFERENCE_PRECISION_HINT: by default CPUs with bfloat16 units compute in
    bfloat16 and are off by 5e-3 in every convolution, so single precision is the default here. `capture`:
    torch programs by torch.export, which releases before 2024.1 do not take, or as a trace. `shapes`:
    `dynamic` keeps the frontend's shapes, which for torch are dynamic; `static` fixes them before compiling.

    float64 tensors are accepted and returned, but computed in the precision of the option (2026.4).
    """

    name: ClassVar[str] = "openvino"
    package: ClassVar[str] = "openvino"
    import_name: ClassVar[str] = "openvino"
    kinds: ClassVar[tuple[str, ...]] = (*onnx_models.KINDS, "TorchCall", "TorchProgram")
    captured: ClassVar[tuple[str, ...]] = (*onnx_models.CAPTURED, "TorchCall", "TorchProgram")
    # Its frontend for torch.export compares versions with packaging, which its wheel does not require.
    exporters: ClassVar[dict[str, tuple[str, ...]]] = {
        **onnx_models.EXPORTERS,
        **dict.fromkeys(("TorchCall", "TorchProgram"), ("packaging",)),
    }
    devices: ClassVar[tuple[str, ...]] = ("CPU", "GPU")
    options: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("f32", "f16", "bf16"),
        "capture": ("exported", "traced"),
        "shapes": ("dynamic", "static"),
    }
    newest_opsets: ClassVar[dict[str, int]] = _NEWEST_OPSETS
    has_native_translators: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ("openvino", "numpy", "torch", "keras", "onnxscript")
    # openvino_telemetry's only switch: it sends nothing from CI (its utils/opt_in_checker.py).
    environment: ClassVar[dict[str, str]] = {"CI": "true", "OMP_NUM_THREADS": "1", **onnx_models.ENVIRONMENT}
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern(
            _EXCEPTIONS, r"OpenVINO does not support the following ONNX operations: ([^\n]+)", r"no \1"
        ),
        UnsupportedPattern(_EXCEPTIONS, r"No conversion rule found for operations: ([^\n]+)", r"no \1"),
        UnsupportedPattern(_EXCEPTIONS, r"CPU plug-?in doesn't support ([^\n]+)", r"the CPU plugin lacks \1"),
        UnsupportedPattern(
            _EXCEPTIONS,
            r"(?<!Internal OpenVINO error: )\b[Uu]nsupported (?:data|element|precision) type:? ?([^\n]*)",
            r"type \1",
        ),
        # Packed integers (runtime/tensor.hpp), strings (the CPU plugin's cpu_memory.h), complex numbers.
        UnsupportedPattern(_EXCEPTIONS, r"\btypes with bit ?widths less th[ae]n 8 bit", "no packed types"),
        UnsupportedPattern(
            _EXCEPTIONS,
            r"\b[Mm]emory (?:object )?can(?:not|'t) (?:be created for string data|load string data"
            r"|accept a descriptor with a string type)",
            "no strings",
        ),
        UnsupportedPattern(_EXCEPTIONS, r"\boperation doesn't allow complex type", "no complex numbers"),
        # A type that it has for no tensor; with fewer expected types it reads a tensor in a wrong way.
        UnsupportedPattern(_EXCEPTIONS, r"Invalid data type (\w+) expected: BOOL, BFLOAT16,", r"type \1"),
        UnsupportedPattern(
            _EXCEPTIONS,
            rf"(?m)^{_NOT_INTERNAL}([^\n]*(?:"
            r"\b[Uu]nsupport(?:ed)?\b|\bTODO: Support\b|\bis not support\b"
            r"|\baccepts ranks from\b|\bunable to convert tensor with type\b"
            r"|\b(?:node|operation) is not implemented\b|\bis not implemented for op\b"
            r"|\b[Nn]ot (?:yet |currently )?supported\b|\b[Tt]he supported \w+ of [^\n]{1,120} is\b"
            r"|\b[Ii]sn't supported\b"
            r"|\b(?:[Oo]nly|currently) supported\b|\bsupported only\b"
            r"|\b[Ss]upports? only\b|\b[Oo]nly supports?\b"
            r"|\b[Dd]o(?:es)?(?: not|n't) support(?:ed)?\b"
            r"|\b[Oo]nly [^\n]{1,120}\bsupported\b"
            r")[^\n]*)",
            r"\1",
        ),
        # What it needs to know before it runs.
        UnsupportedPattern(
            _EXCEPTIONS,
            rf"(?m)^{_NOT_INTERNAL}([^\n]*(?:"
            r"\b(?:must|should) be (?:an? )?(?:scalar or \S+ |string )?[Cc]onstant\b"
            r"|\bdimension is not constant\b|\bexpects (?:a constant|Constant for port)\b"
            r"|\baccepting only a constant\b|\bcannot be interpreted as [Cc]onstant\b"
            r"|\bcould not interpret the non-constant\b"
            # The ONNX frontend's, such as "rank must be static" and "shape needs to be known(static)".
            r"|\b(?:[Rr]ank|shape|dimension)(?: of [^\n]{1,60})? "
            r"(?:must|has to|needs to) be (?:known ?\()?(?:known|static)\b"
            r"|\bmust have (?:a )?static (?:rank|shape)\b|\brequires static \w+\b|\brank cannot be dynamic\b"
            r"|\bcannot operate with dynamic shapes\b"
            r"|\b[Rr]ank should be known\b|\brequired tensor with static rank\b"
            r"|\bnot possible to convert\b|\bCouldn't retrieve input stride information\b"
            r")[^\n]*)",
            r"\1",
        ),
        UnsupportedPattern(
            _EXCEPTIONS,
            r"(?m)^([^\n]*\btype must be (?:one of the supported types: )?(?:b?f|[iu])\d+\b[^\n]*)",
            r"\1",
        ),
        # Col2Im of images: its translator and its shape inference.
        UnsupportedPattern(
            _EXCEPTIONS,
            r"(?m)^([^\n]*\b(?:attribute must have size|must be a 1D input of shape) \[[24]\][^\n]*)",
            r"\1",
        ),
        UnsupportedPattern(  # of releases up to 2023
            _EXCEPTIONS, r"\bhas zero dimension which is not allowed", "no tensors without elements"
        ),
        # A translator's check of its inputs: PYTORCH_OP_CONVERSION_CHECK(correction == 1, ...).
        UnsupportedPattern(
            _EXCEPTIONS,
            r"\[PyTorch Frontend\] Unexpected ((?:value|length of list with weights) [^\n.]+)",
            r"\1",
        ),
        # Recurrent cells (core/src/op/util/activation_functions.cpp) and the PyTorch frontend.
        UnsupportedPattern(
            _EXCEPTIONS, r"\bUnknown ((?:activation function|pad|\w+ mode): ?[^\n]*)", r"no \1"
        ),
        # An optional argument that it does not take. Too few inputs are an error of its own.
        UnsupportedPattern(
            _EXCEPTIONS, r"Got more inputs than expected: \d+", "more inputs than its translator takes"
        ),
        # A node that a translator made to check a shape is named after what it checks.
        UnsupportedPattern(
            _EXCEPTIONS, r"with name '([^'\n]+)/requires_(\d+x\d+)' Check", r"\1 of other shapes than \2"
        ),
    )

    @classmethod
    def requirements(cls, version: str) -> list[str]:
        """Releases up to 2024.0 were built against numpy 1 without declaring it: with numpy 2 they read
        garbage from every array. Later ones bound numpy themselves.
        """
        year, minor = (int(part) for part in version.split(".")[:2])
        return [f"openvino=={version}", *(["numpy<2"] if (year, minor) < (2024, 1) else [])]

    @classmethod
    def computed_in(cls, device: str, options: dict[str, str]) -> dict[str, str]:
        """The plugins list no f64 among their precisions, and convert wider types to the option's
        (docs.openvino.ai, "CPU device", "GPU device", section Supported Inference Data Types).
        """
        del device
        narrow = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[options["precision"]]
        return {wide: narrow for wide in ("float64", "float32") if wide != narrow}

    def load(self, device: str, options: dict[str, Any]) -> None:
        """Imports openvino and creates its core."""
        import openvino

        if not hasattr(openvino, "Core"):  # up to 2023.0 the API was in openvino.runtime
            import openvino.runtime as openvino
        self._ov = openvino
        self._core = openvino.Core()
        probe = np.arange(3, dtype=np.float32)
        if not np.array_equal(openvino.Tensor(probe).data, probe):
            raise RuntimeError(f"this openvino cannot read arrays of numpy {np.__version__}: install numpy<2")
        available = {name.partition(".")[0] for name in self._core.available_devices}  # "GPU.0" is a GPU
        if device not in available:
            raise RuntimeError(
                f"openvino finds no {device} on this machine, only: {', '.join(sorted(available))}"
            )
        resolved = self.resolve_options(options)
        self._device = device
        self._static = resolved["shapes"] == "static"
        self._capture = resolved["capture"] if takes_exported(openvino.__version__) else "traced"
        self._config = {"INFERENCE_PRECISION_HINT": resolved["precision"]}
        if device == "CPU":
            # One case at a time and one worker per core: more threads would only compete.
            self._config["INFERENCE_NUM_THREADS"] = "1"
            memory_retention.retain_freed_memory()

    def is_usable(self) -> bool:
        """Whether torch still dispatches as in a new process."""
        return torch_programs.is_torch_usable()

    def convert(self, program: Program, inputs: Named) -> _Model:
        """The frontend's model."""
        if program.kind in onnx_models.KINDS:
            model = self._core.read_model(onnx_models.model_bytes(program, inputs))
            found = _Model(model, None, program.kind != "OnnxModel")
        else:
            found = self._from_torch(program, inputs)
        if self._static:
            fed = self._match_inputs(found, inputs)
            shapes = {port: list(value.shape) for port, value in fed if isinstance(value, Tensor)}
            found.model.reshape(shapes)
        return found

    def _from_torch(self, program: Program, inputs: Named) -> _Model:
        """The captured program through `convert_model`, which traces a module itself: the trace of its
        caller lacks types of empty lists. Raises Unsupported for types that its API lacks, such as complex
        numbers.
        """
        built = torch_programs.build(program)
        feeds = [torch_programs.from_torch(tensor) for tensor in built.arrange(inputs)]
        for value in feeds:
            self._tensor(value)
        graph = torch_graphs.capture(built, inputs, self._capture)
        if any(dtype.startswith("complex") for dtype in torch_graphs.output_dtypes(graph)):
            raise Unsupported("OpenVINO gives no complex tensors")
        names = torch_graphs.input_names(graph)
        for name in torch_graphs.operators(graph) if self.instrumentation.record else ():
            self.instrumentation.note("converter", name)
        if self._capture == "exported":
            return _Model(self._ov.convert_model(graph), feeds, by_position=True, names=names)
        given = tuple(built.arrange(inputs))
        torch_programs.reseed()
        return _Model(self._ov.convert_model(built.module, example_input=given), feeds, by_position=True)

    def run_capture(self, program: Program, inputs: Named) -> Named:
        """Keras' export to ONNX, or the captured program, decomposed if it is exported."""
        if program.kind in onnx_models.CAPTURED:
            return onnx_models.exported_model(program, inputs)
        return torch_graphs.run_capture(program, inputs, self._capture, self._ov.convert_model)

    def compile(self, model: _Model) -> _Model:
        """The device's compiled model."""
        model = model._replace(outputs=_output_names(model.model.outputs))
        if self.instrumentation.stop_after:
            return model._replace(model=self._snapshot(model.model))
        config = {**self._config, **bisectable_passes.properties(self.instrumentation)}
        if not self.instrumentation.record:
            with bisectable_passes.note_applied(self.instrumentation):
                return model._replace(model=self._core.compile_model(model.model, self._device, config))
        self.instrumentation.note("stage", bisectable_passes.CONVERSION)
        with bisectable_passes.dump_passes() as folder:
            try:
                return model._replace(model=self._core.compile_model(model.model, self._device, config))
            finally:
                for name, _ in bisectable_passes.list_stages(folder):
                    self.instrumentation.note("stage", name)

    def _snapshot(self, model: Any) -> bisectable_passes.Snapshot:
        """The model after the requested stage; raises Unsupported if it cannot be read back."""
        stage = self.instrumentation.stop_after
        if stage == bisectable_passes.CONVERSION:
            return bisectable_passes.Snapshot(model, stage)
        with bisectable_passes.dump_passes() as folder:
            with contextlib.suppress(RuntimeError):  # a later pass may fail
                self._core.compile_model(model, self._device, self._config)
            path = dict(bisectable_passes.list_stages(folder)).get(stage)
            if path is None:
                raise Unsupported(f"no pass {stage} is run on this model")
            try:
                return bisectable_passes.Snapshot(self._core.read_model(str(path)), stage)
            except RuntimeError as error:
                raise Unsupported(f"the model after {stage} cannot be read back") from error

    def run(self, executable: _Model, inputs: Named) -> Named:
        """One inference; inputs that the compiler folded away are left out."""
        if isinstance(executable.model, bisectable_passes.Snapshot):
            return self._evaluate(executable, inputs)
        compiled = executable.model
        request = compiled.create_infer_request()
        for port, value in self._match_inputs(executable, inputs):
            request.set_tensor(port, self._tensor(value))
        request.infer()
        ports = list(compiled.outputs)
        names = (
            onnx_models.positional_names(len(ports))
            if executable.by_position
            else _output_names(ports, executable.outputs)
        )
        return [(name, self._value(request.get_tensor(port), port)) for name, port in zip(names, ports)]

    def _evaluate(self, executable: _Model, inputs: Named) -> Named:
        """The outputs of a snapshot, by reference kernels."""
        snapshot: bisectable_passes.Snapshot = executable.model
        given = dict(self._match_inputs(executable._replace(model=snapshot.model), inputs))
        ports = list(snapshot.model.outputs)
        tensors = [self._tensor(given[port]) for port in snapshot.model.inputs]
        found = bisectable_passes.evaluate(self._ov, snapshot, tensors)
        names = (
            onnx_models.positional_names(len(ports))
            if executable.by_position
            else _output_names(ports, executable.outputs)
        )
        return [(name, self._value(tensor, port)) for name, tensor, port in zip(names, found, ports)]

    def _match_inputs(self, executable: _Model, inputs: Named) -> list[tuple[Any, Value]]:
        """The compiled model's inputs with their values."""
        ports = list(executable.model.inputs)
        if executable.feeds is None:
            return _match_ports(ports, dict(inputs))
        named = dict(zip(executable.names, executable.feeds))
        if len(ports) < len(named):  # the frontend drops inputs that nothing reads
            return _match_ports(ports, named)
        if len(ports) != len(executable.feeds):
            raise Unsupported(f"the compiled model has {len(ports)} of {len(executable.feeds)} inputs")
        return list(zip(ports, executable.feeds))

    def _tensor(self, value: Value) -> Any:
        if not isinstance(value, Tensor):
            raise Unsupported("OpenVINO takes no sequences or optionals as inputs")
        if value.dtype in RAW_DTYPES:
            return self._raw_tensor(value)
        if value.dtype == STRING and not hasattr(self._ov.Type, "string"):
            raise Unsupported("this OpenVINO takes no string tensors")
        if value.dtype.startswith("complex"):
            raise Unsupported("OpenVINO takes no complex tensors")
        if value.dtype == STRING:
            return self._ov.Tensor(value.array().astype(np.str_))
        return self._ov.Tensor(np.ascontiguousarray(value.array()).copy().reshape(value.shape))

    def _raw_tensor(self, value: Tensor) -> Any:
        short = _RAW.get(value.dtype)
        element = getattr(self._ov.Type, short, None) if short else None
        if element is None:
            raise Unsupported(f"this OpenVINO takes no {value.dtype} tensors")
        tensor = self._ov.Tensor(element, self._ov.Shape(list(value.shape)))
        if value.data:
            # `data` is a view of the same width under another type: float16 for bf16, uint8 for float8.
            tensor.data.view(CARRIERS[value.dtype])[...] = value.array()
        return tensor

    def _value(self, tensor: Any, port: Any) -> Value:
        short = port.get_element_type().get_type_name()
        if short == "string":
            # numpy would turn an empty list into numbers
            return Tensor.of(np.asarray(tensor.str_data, np.str_))
        shape = tuple(tensor.shape)
        if short in _RAW_NAMES:
            return Tensor(_RAW_NAMES[short], shape, tensor.data.tobytes())
        if short in ("i4", "u4", "u2", "u1", "nf4", "f4e2m1"):
            raise Unsupported(f"packed {short} outputs cannot be read back")
        return Tensor.of(np.array(tensor.data).reshape(shape))


def takes_exported(version: str) -> bool:
    """Whether a release, as `2024.1.0` or with a build number, takes a torch.export.ExportedProgram."""
    year, minor = (int(part) for part in version.split("-")[0].split(".")[:2])
    return (year, minor) >= _EXPORTED_SINCE


def _match_ports(ports: list[Any], given: dict[str, Value]) -> list[tuple[Any, Value]]:
    """Each port with its value: by name, and where names were lost, by order if the numbers agree.

    An identity such as Dropout leaves its input with the name of the output.
    """
    names = [next((name for name in port.get_names() if name in given), "") for port in ports]
    lost = [port for port, name in zip(ports, names) if not name]
    rest = [value for name, value in given.items() if name not in names]
    if lost and len(lost) != len(rest):
        raise Unsupported(f"the compiled model asks for inputs {[port.get_names() for port in lost]}")
    return [(port, given[name]) for port, name in zip(ports, names) if name] + list(zip(lost, rest))


def _output_names(ports: Sequence[Any], before: Sequence[str] = ()) -> list[str]:
    """A name for each port, that at its place `before` if it has that.

    Outputs that compilation finds equal have all their names, and those of an input that they are.
    """
    found: list[str] = []
    for place, port in enumerate(ports):
        names = set(port.get_names())
        kept = [name for name in before[place : place + 1] if name in names]
        found.append(min(kept or names - set(found) or names, default=""))
    return found
