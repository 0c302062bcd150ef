"""Graph → ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

from fuzzing.graph.ir import Attribute, Body, Constant, Graph
from fuzzing.graph.types import TensorType

PRODUCER = "assay"


def to_onnx(graph: Graph) -> ModelProto:
    """The model. Edges that have no name get one that tells their number."""
    model = ModelProto()
    model.ir_version = _ir_version(graph.opset)
    model.producer_name = PRODUCER
    for domain, version in {"": graph.opset, **graph.opsets}.items():
        entry = model.opset_import.add()
        entry.domain, entry.version = domain, version
    model.graph.name = "graph"
    _write(graph, model.graph, {}, "v")
    return model


def to_bytes(graph: Graph) -> bytes:
    """The model's bytes; the same for equal graphs."""
    data: bytes = to_onnx(graph).SerializeToString(deterministic=True)
    return data


@cache
def _ir_version(opset: int) -> int:
    """The oldest format that may hold this opset: older runtimes refuse newer formats."""
    entry = onnx.helper.make_opsetid("", opset)
    return onnx.helper.find_min_ir_version_for([entry], ignore_unknown=True)


def _write(graph: Graph, proto: GraphProto, outer: Mapping[int, str], prefix: str) -> None:
    names = _names(graph, outer, prefix)
    for edge in graph.inputs:
        _declare(proto.input.add(), names[edge], graph.types[edge])
    for edge, constant in graph.constants.items():
        tensor = proto.initializer.add()
        tensor.name = names[edge]
        _fill(tensor, constant)
    for number, node in enumerate(graph.nodes):
        made = proto.node.add()
        made.op_type = node.op
        made.name = f"{prefix}n{number}_{node.op}"
        if node.domain:
            made.domain = node.domain
        made.input.extend(["" if edge is None else names[edge] for edge in node.inputs])
        made.output.extend([names[edge] for edge in node.outputs])
        for name, value in node.attributes.items():
            attribute = made.attribute.add()
            attribute.name = name
            if isinstance(value, Body):
                feeds = [names[edge] for edge in value.captures]
                captured = dict(zip(value.graph.captured, feeds, strict=True))
                attribute.type = AttributeProto.GRAPH
                attribute.g.name = f"{made.name}_{name}"
                _write(value.graph, attribute.g, captured, f"{made.name}_{name}_v")
            else:
                _set(attribute, value)
    for edge in graph.outputs:
        _declare(proto.output.add(), names[edge], graph.types[edge])


def _names(graph: Graph, outer: Mapping[int, str], prefix: str) -> list[str]:
    names = [f"{prefix}{edge}" for edge in range(len(graph.types))]
    for edge, name in graph.names.items():
        names[edge] = name
    for edge, name in outer.items():
        names[edge] = name
    return names


def _declare(proto: onnx.ValueInfoProto, name: str, type_: TensorType) -> None:
    proto.name = name
    tensor = proto.type.tensor_type
    tensor.elem_type = DTYPES[type_.dtype]
    if type_.shape is None:
        return
    tensor.shape.SetInParent()
    for dim in type_.shape:
        made = tensor.shape.dim.add()
        if dim is not None:
            made.dim_value = dim


#: ONNX's number of each element type, by the name that `fuzzing.cases.values` gives it.
DTYPES: dict[str, int] = {
    {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower()): number
    for name, number in TensorProto.DataType.items()
}


def _fill(tensor: TensorProto, constant: Constant) -> None:
    tensor.data_type = DTYPES[constant.dtype]
    tensor.dims.extend(constant.array.shape)
    tensor.raw_data = constant.array.tobytes()


def _set(proto: AttributeProto, value: Attribute) -> None:
    if isinstance(value, int):
        proto.type, proto.i = AttributeProto.INT, value
    elif isinstance(value, float):
        proto.type, proto.f = AttributeProto.FLOAT, value
    elif isinstance(value, str):
        proto.type, proto.s = AttributeProto.STRING, value.encode()
    elif isinstance(value, Constant):
        proto.type = AttributeProto.TENSOR
        _fill(proto.t, value)
    elif isinstance(value, tuple):
        _set_many(proto, value)
    else:
        raise TypeError(f"an attribute cannot be {value!r}")


def _set_many(proto: AttributeProto, values: tuple[int, ...] | tuple[float, ...] | tuple[str, ...]) -> None:
    first = values[0] if values else 0
    if isinstance(first, int):
        proto.type = AttributeProto.INTS
        proto.ints.extend(values)
    elif isinstance(first, float):
        proto.type = AttributeProto.FLOATS
        proto.floats.extend(values)
    else:
        proto.type = AttributeProto.STRINGS
        proto.strings.extend([value.encode() for value in values])  # type: ignore[union-attr]
