"""NVIDIA TensorRT, releases 10 and 11.

Not yet run on an NVIDIA device or with TensorRT's libraries (libnvinfer).
tests/fuzzing/backends/test_tensorrt.py checks every call against the signatures in the bindings of releases
10 and 11, everything up to the missing library, and the paths through this file on stand-ins for the bindings
and the CUDA runtime.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar, Dict, List, NamedTuple, Tuple

from fuzzing.backends.base import Backend, Named, Unsupported, UnsupportedPattern, register
from fuzzing.backends.shared import cuda_runtime
from fuzzing.cases.programs import Program
from fuzzing.cases.values import CARRIERS, Tensor, Value

if TYPE_CHECKING:
    import tensorrt as trt

#: tensorrt.DataType by name. Packed 4-bit types, and doubles, which TensorRT lacks, are left out.
_DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "FP8": "float8_e4m3fn",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "BOOL": "bool",
}


class ParseFailed(Exception):  # noqa: N818 - the name is what a report shows
    """TensorRT's ONNX parser rejected the model; one line for each error, "CODE: operator: text"."""


class BuildFailed(Exception):  # noqa: N818
    """TensorRT built no engine; the text is its log."""


class RunFailed(Exception):  # noqa: N818
    """TensorRT could not run an engine that it had built; the text is its log."""


class _Parsed(NamedTuple):
    """A network, and the parser, which holds its weights and must outlive it."""

    builder: trt.Builder
    network: trt.INetworkDefinition
    parser: trt.OnnxParser
    inputs: Dict[str, Value]


@register
class TensorRt(Backend):
    """ONNX: parser, builder, engine, execution context. torch: `torch_tensorrt.compile` (its dynamo
    frontend).

    convert is the parser, compile the builder. Single precision is strict: TF32, which rounds inputs of
    products to 10 bits and is on by default, is switched off.

    options: `precision`, fp32 (the default) or fp16, which lets the builder choose half precision. Release 11
    has no such switch (networks are strongly typed) and fp16 is rejected there.
    """

    name: ClassVar[str] = "tensorrt"
    package: ClassVar[str] = "tensorrt"
    import_name: ClassVar[str] = "tensorrt"
    kinds: ClassVar[Tuple[str, ...]] = ("OnnxModel", "TorchCall", "TorchProgram")
    devices: ClassVar[Tuple[str, ...]] = ("CUDA",)
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {"precision": ("fp32", "fp16")}
    sticky: ClassVar[Tuple[str, ...]] = cuda_runtime.STICKY
    packages: ClassVar[Tuple[str, ...]] = ("tensorrt", "torch-tensorrt", "torch", "numpy")
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = (
        # nvonnxparser::ErrorCode (NvOnnxParser.h): codes for what it cannot import, apart from invalid
        # models.
        UnsupportedPattern(
            "ParseFailed", r"UNSUPPORTED_(?:NODE|GRAPH)\w*: ([^:\n]+): ([^\n]*)", r"no \1: \2"
        ),
        UnsupportedPattern("UnsupportedOperatorException", r"([^\n]*)", r"\1"),  # torch_tensorrt's
    )

    def load(self, device: str, options: Dict[str, Any]) -> None:  # noqa: ARG002
        """Imports tensorrt and finds the CUDA runtime. Raises ImportError, RuntimeError or CudaError."""
        try:
            import tensorrt
        except ImportError as error:
            raise ImportError(
                f"TensorRT cannot be loaded ({error}). Its bindings need NVIDIA's libraries: install the "
                "package tensorrt on a machine with an NVIDIA driver, or put libnvinfer's folder on "
                "LD_LIBRARY_PATH"
            ) from error
        self._half = options.get("precision", "fp32") == "fp16"
        if self._half and not hasattr(tensorrt.BuilderFlag, "FP16"):
            raise RuntimeError(
                f"TensorRT {tensorrt.__version__} cannot choose half precision: its networks are "
                "strongly typed. Use precision fp32, or a release 10"
            )
        self._cuda = cuda_runtime.CudaRuntime()
        self._stream = self._cuda.stream()
        self._errors: List[str] = []
        self._logger = _logger(self._errors)

    def convert(self, program: Program, inputs: Named) -> Any:
        """The parsed network; of a torch program, the module and its inputs."""
        self._errors.clear()
        if program.kind != "OnnxModel":
            return _TorchModule(program, inputs, half=self._half)
        return _parse(self._logger, program.to_bytes(), dict(inputs))

    def compile(self, model: Any) -> Any:
        """An engine."""
        if isinstance(model, _TorchModule):
            return model.compiled()
        plan = _plan(model, half=self._half)
        if plan is None:
            raise BuildFailed("\n".join(self._errors) or "the builder returned nothing and gave no reason")
        return _engine(self._logger, plan)

    def run(self, executable: Any, inputs: Named) -> Named:
        """One execution; inputs that the builder removed are left out."""
        if isinstance(executable, _TorchModule):
            return executable.run(inputs)
        execution = _Execution(self._cuda, self._stream, executable)
        try:
            if not execution.run(dict(inputs)):
                raise RunFailed("\n".join(self._errors) or "the engine did not run and gave no reason")
            return execution.outputs()
        finally:
            execution.free()


def _logger(errors: List[str]) -> trt.ILogger:
    """A logger that appends to `errors`: TensorRT's return value for failure is only None or False."""
    import tensorrt

    class Logger(tensorrt.ILogger):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            tensorrt.ILogger.__init__(self)  # the bindings require this call by name

        def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
            if severity in (tensorrt.ILogger.INTERNAL_ERROR, tensorrt.ILogger.ERROR):
                errors.append(msg)

    return Logger()


def _parse(logger: trt.ILogger, model: bytes, inputs: Dict[str, Value]) -> _Parsed:
    import tensorrt

    builder = tensorrt.Builder(logger)
    network = builder.create_network(0)
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(model):
        errors = [parser.get_error(index) for index in range(parser.num_errors)]
        raise ParseFailed(
            "\n".join(map(_format_error, errors)) or "the parser refused the model and gave no reason"
        )
    return _Parsed(builder, network, parser, inputs)


def _format_error(error: Any) -> str:
    operator = error.node_operator() or "model"
    return f"{error.code().name}: {operator}: {' '.join(error.desc().split())}"


def _plan(parsed: _Parsed, *, half: bool) -> Any:
    """The serialized engine, None if TensorRT could not build one."""
    import tensorrt

    config = parsed.builder.create_builder_config()
    config.clear_flag(tensorrt.BuilderFlag.TF32)
    if half:
        config.set_flag(tensorrt.BuilderFlag.FP16)
    profile = parsed.builder.create_optimization_profile()
    if _set_shapes(profile, parsed):
        config.add_optimization_profile(profile)
    return parsed.builder.build_serialized_network(parsed.network, config)


def _set_shapes(profile: trt.IOptimizationProfile, parsed: _Parsed) -> bool:
    """Sets the profile's shapes to those of the case's inputs; whether the network needs a profile."""
    import tensorrt

    needed = False
    for index in range(parsed.network.num_inputs):
        port = parsed.network.get_input(index)
        given = _dense(port.name, parsed.inputs, port.dtype.name)
        if port.is_shape_tensor:
            values = [int(item) for item in given.array().ravel()]
            profile.set_shape_input(port.name, values, values, values)
            needed = True
        elif -1 in tuple(port.shape):
            shape = tensorrt.Dims(given.shape)
            profile.set_shape(port.name, shape, shape, shape)
            needed = True
    return needed


def _dense(name: str, inputs: Dict[str, Value], dtype: str) -> Tensor:
    """The input as a dense tensor; raises Unsupported for types that TensorRT cannot take."""
    value = inputs.get(name)
    if not isinstance(value, Tensor):
        raise Unsupported(f"TensorRT takes tensors only; {name} is none")
    if _DTYPES.get(dtype) != value.dtype:
        raise Unsupported(f"TensorRT has no {value.dtype} input: it makes {name} {dtype}")
    return value


def _engine(logger: trt.ILogger, plan: Any) -> trt.ICudaEngine:
    import tensorrt

    engine = tensorrt.Runtime(logger).deserialize_cuda_engine(plan)
    if engine is None:
        raise BuildFailed("TensorRT cannot read the engine that it has just written")
    return engine


class _Execution:
    """One run of an engine: its memory, and the outputs in the engine's order."""

    def __init__(self, cuda: cuda_runtime.CudaRuntime, stream: int, engine: trt.ICudaEngine) -> None:
        self._cuda = cuda
        self._stream = stream
        self._engine = engine
        self._context = engine.create_execution_context()
        self._addresses: List[int] = []
        self._host_memory: List[Any] = []  # host memory that the engine reads, and allocators it calls
        self._outputs: Dict[str, Any] = {}

    def run(self, inputs: Dict[str, Value]) -> bool:
        """Whether TensorRT completed the run. Raises CudaError for errors of its kernels."""
        import tensorrt

        for index in range(self._engine.num_io_tensors):
            name = self._engine.get_tensor_name(index)
            if self._engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT:
                self._set_input(name, _dense(name, inputs, self._engine.get_tensor_dtype(name).name))
            else:
                self._outputs[name] = allocator = _allocator(self)
                self._context.set_output_allocator(name, allocator)
        ended: bool = self._context.execute_async_v3(self._stream)
        self._cuda.wait(self._stream)
        return ended

    def _set_input(self, name: str, value: Tensor) -> None:
        if self._on_host(name):
            buffer = ctypes.create_string_buffer(value.data, max(1, len(value.data)))
            self._host_memory.append(buffer)
            address = ctypes.addressof(buffer)
        else:
            address = self.allocate(len(value.data))
            self._cuda.to_device(address, value.data)
            self._context.set_input_shape(name, value.shape)
        self._context.set_tensor_address(name, address)

    def allocate(self, size: int) -> int:
        """Memory on the device that lives as long as this execution."""
        self._addresses.append(self._cuda.allocate(size))
        return self._addresses[-1]

    def outputs(self) -> Named:
        """The computed tensors."""
        return [(name, self._read(name, allocator)) for name, allocator in self._outputs.items()]

    def _read(self, name: str, allocator: Any) -> Tensor:
        kind = self._engine.get_tensor_dtype(name).name
        if kind not in _DTYPES:
            raise Unsupported(f"outputs of TensorRT's type {kind} cannot be read back")
        dtype = _DTYPES[kind]
        size = _bytes_of(dtype, allocator.shape)
        if not size:
            return Tensor(dtype, allocator.shape, b"")
        return Tensor(dtype, allocator.shape, self._cuda.to_host(allocator.address, size))

    def _on_host(self, name: str) -> bool:
        import tensorrt

        location = self._engine.get_tensor_location(name)
        return bool(location == tensorrt.TensorLocation.HOST)

    def free(self) -> None:
        """Frees all device memory."""
        while self._addresses:
            self._cuda.free(self._addresses.pop())


def _allocator(execution: _Execution) -> Any:
    """A callback through which TensorRT reports an output's size and shape, which may depend on data."""
    import tensorrt

    class Allocator(tensorrt.IOutputAllocator):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            tensorrt.IOutputAllocator.__init__(self)  # the bindings require this call by name
            self.address = 0
            self.shape: Tuple[int, ...] = ()

        def reallocate_output(self, tensor_name: str, memory: Any, size: int, alignment: int) -> int:  # noqa: ARG002
            """Allocates exactly `size`: CUDA aligns to 256 bytes, the largest alignment requested."""
            self.address = execution.allocate(size)
            return self.address

        def reallocate_output_async(
            self,
            tensor_name: str,
            memory: Any,
            size: int,
            alignment: int,
            stream: int,  # noqa: ARG002
        ) -> int:
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:  # noqa: ARG002
            self.shape = tuple(shape)

    return Allocator()


def _bytes_of(dtype: str, shape: Tuple[int, ...]) -> int:
    import numpy as np

    count = int(np.prod(shape, dtype=np.int64))
    return count * np.dtype(CARRIERS[dtype]).itemsize


class _TorchModule:
    """A torch program through torch_tensorrt: TensorRT runs what it can, torch the rest."""

    def __init__(self, program: Program, inputs: Named, *, half: bool) -> None:
        from fuzzing.backends.shared import torch_programs

        if half:
            raise Unsupported("torch_tensorrt takes the precision from the program: use fp32")
        try:
            import torch_tensorrt
        except ImportError as error:
            raise Unsupported(f"torch programs need torch_tensorrt ({error})") from error
        self._library = torch_tensorrt
        self._torch = torch_programs
        self._built = torch_programs.build(program, "cuda")
        self._arguments = tuple(self._built.arrange(inputs, "cuda"))
        try:
            self._exported = torch_tensorrt.dynamo.trace(self._built.module, arg_inputs=self._arguments)
        except Exception as error:  # torch raises anything here, and all of it is about torch
            raise Unsupported(f"torch.export cannot capture it: {type(error).__name__}: {error}") from error
        self._module: Any = None

    def compiled(self) -> _TorchModule:
        """The compiled module: single operators too (min_block_size), without silent fallback to torch."""
        self._module = self._library.dynamo.compile(
            self._exported,
            arg_inputs=self._arguments,
            disable_tf32=True,
            truncate_double=False,
            min_block_size=1,
            pass_through_build_failures=True,
        )
        return self

    def run(self, inputs: Named) -> Named:
        """One call on fresh inputs."""
        import torch

        with torch.no_grad():
            self._torch.reseed()
            return self._torch.named_outputs(self._module(*self._built.arrange(inputs, "cuda")))
