"""A stand-in for TensorRT's bindings: the names that our backend uses, on ONNX's reference evaluator.

It knows the shapes that it was given only, computes on the host, and reports as TensorRT does: None or
False for failure, with the reason told to the logger alone. That it has no name which the real bindings
lack is checked in test_tensorrt.py.
"""

from __future__ import annotations

import ctypes
from enum import Enum
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

__version__ = "10.0.0"


class DataType(Enum):
    FLOAT = "float32"
    INT64 = "int64"
    BOOL = "bool"


class TensorIOMode(Enum):
    INPUT = 1
    OUTPUT = 2


class TensorLocation(Enum):
    DEVICE = 0
    HOST = 1


class BuilderFlag(Enum):
    FP16 = 0
    TF32 = 7


class ErrorCode(Enum):
    INVALID_GRAPH = 5
    UNSUPPORTED_NODE = 8


class ILogger:
    INTERNAL_ERROR, ERROR, WARNING = range(3)

    def log(self, severity: int, msg: str) -> None:
        raise NotImplementedError


class IOutputAllocator:
    pass


class Dims(tuple[int, ...]):
    __slots__ = ()


class ITensor:
    def __init__(self, info: onnx.ValueInfoProto) -> None:
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type).name
        self.name = info.name
        self.dtype = DataType(kind if kind != "float64" else "float32")  # as TensorRT does
        self.shape = tuple(size.dim_value or -1 for size in info.type.tensor_type.shape.dim)
        self.is_shape_tensor = info.name == "shape"


class INetworkDefinition:
    def __init__(self) -> None:
        self.model = onnx.ModelProto()

    @property
    def num_inputs(self) -> int:
        return len(self.model.graph.input)

    def get_input(self, index: int) -> ITensor:
        return ITensor(self.model.graph.input[index])


class ParserError:
    def __init__(self, code: ErrorCode, operator: str, desc: str) -> None:
        self._told = code, operator, desc

    def code(self) -> ErrorCode:
        return self._told[0]

    def node_operator(self) -> str:
        return self._told[1]

    def desc(self) -> str:
        return self._told[2]


class OnnxParser:
    def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
        self._network = network
        self._errors: list[ParserError] = []

    def parse(self, model: bytes) -> bool:
        proto = onnx.load_from_string(model)
        for node in proto.graph.node:
            if node.op_type == "TfIdfVectorizer":
                self._errors.append(
                    ParserError(ErrorCode.UNSUPPORTED_NODE, node.op_type, "no importer\nfor it")
                )
            if node.op_type == "Concat" and not node.input:
                self._errors.append(ParserError(ErrorCode.INVALID_GRAPH, "", "no inputs"))
        self._network.model.CopyFrom(proto)
        return not self._errors

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        return self._errors[index]


class IOptimizationProfile:
    def __init__(self) -> None:
        self.ranges: dict[str, Any] = {}

    def set_shape(self, input: str, min: Dims, opt: Dims, max: Dims) -> None:  # noqa: A002 - its names
        self.ranges[input] = (min, opt, max)

    def set_shape_input(self, input: str, min: list[int], opt: list[int], max: list[int]) -> None:  # noqa: A002
        self.ranges[input] = (min, opt, max)


class IBuilderConfig:
    def __init__(self) -> None:
        self.set = {BuilderFlag.TF32}
        self.profiles: list[IOptimizationProfile] = []

    def set_flag(self, flag: BuilderFlag) -> None:
        self.set.add(flag)

    def clear_flag(self, flag: BuilderFlag) -> None:
        self.set.remove(flag)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        self.profiles.append(profile)
        return 0


class Builder:
    #: What the last network was built with, for tests to look at.
    configured: IBuilderConfig

    def __init__(self, logger: ILogger) -> None:
        self._logger = logger

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        return INetworkDefinition()

    def create_builder_config(self) -> IBuilderConfig:
        return IBuilderConfig()

    def create_optimization_profile(self) -> IOptimizationProfile:
        return IOptimizationProfile()

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> bytes | None:
        Builder.configured = config
        dynamic = [port.name for port in network.model.graph.input if -1 in ITensor(port).shape]
        if dynamic and not config.profiles:
            self._logger.log(ILogger.ERROR, f"{dynamic} need an optimization profile")
            return None
        return bytes(network.model.SerializeToString())


class Runtime:
    def __init__(self, logger: ILogger) -> None:
        self._logger = logger

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine:
        return ICudaEngine(onnx.load_from_string(serialized_engine), self._logger)


class ICudaEngine:
    def __init__(self, model: onnx.ModelProto, logger: ILogger) -> None:
        self.model, self.logger = model, logger
        self.ports = {port.name: port for port in [*model.graph.input, *model.graph.output]}

    @property
    def num_io_tensors(self) -> int:
        return len(self.ports)

    def get_tensor_name(self, index: int) -> str:
        return str(list(self.ports)[index])

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        inputs = [port.name for port in self.model.graph.input]
        return TensorIOMode.INPUT if name in inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        return ITensor(self.ports[name]).dtype

    def get_tensor_location(self, name: str) -> TensorLocation:
        return TensorLocation.HOST if name == "shape" else TensorLocation.DEVICE

    def create_execution_context(self) -> IExecutionContext:
        return IExecutionContext(self)


class IExecutionContext:
    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._allocators: dict[str, Any] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = shape
        return True

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self._addresses[name] = memory
        return True

    def set_output_allocator(self, name: str, output_allocator: IOutputAllocator) -> bool:
        self._allocators[name] = output_allocator
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        try:
            outputs = ReferenceEvaluator(self._engine.model).run(
                None, {name: self._read(name) for name in self._addresses}
            )
        except Exception as error:  # noqa: BLE001 - whatever numpy finds wrong
            self._engine.logger.log(ILogger.ERROR, str(error))
            return False
        for (name, allocator), output in zip(self._allocators.items(), outputs, strict=True):
            address = allocator.reallocate_output(name, None, output.nbytes, 256)
            ctypes.memmove(address, output.tobytes(), output.nbytes)
            allocator.notify_shape(name, Dims(output.shape))
        return True

    def _read(self, name: str) -> np.ndarray[Any, Any]:
        dtype = np.dtype(self._engine.get_tensor_dtype(name).value)
        shape = self._shapes.get(name, ITensor(self._engine.ports[name]).shape)
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(self._addresses[name], size), dtype).reshape(shape)
