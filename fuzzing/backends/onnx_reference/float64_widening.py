"""An ONNX model with every float narrower than float64 widened: the same program in higher precision.

float8 and float4 stay: they are storage formats, and rounding to them is part of the program. float16,
bfloat16 and float32 are the precision of computation. Needs onnx; runs in the reference worker.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import numpy as np

#: onnx.TensorProto.DataType (onnx.proto): FLOAT, FLOAT16 and BFLOAT16 to DOUBLE, COMPLEX64 to COMPLEX128.
WIDER = {1: 11, 10: 11, 16: 11, 14: 15}
_DOUBLE = 11

#: Integer attributes of the standard's operators that name an element type.
_TYPE_ATTRIBUTES = frozenset(
    {"to", "dtype", "output_datatype", "output_dtype", "stash_type", "softmax_precision", "precision"}
)
#: Operators that return float32, or compute in it, if such an attribute is absent.
_FLOAT_BY_DEFAULT = {
    "RMSNormalization": "stash_type",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "BlackmanWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "GroupNormalization": "stash_type",
    "HannWindow": "output_datatype",
    "LayerNormalization": "stash_type",
    "MelWeightMatrix": "output_datatype",
    "SequenceEmpty": "dtype",
}


def widen(model: Any) -> Any:
    """A widened copy of a ModelProto. Shapes annotated between inputs and outputs are kept."""
    wide = type(model)()
    wide.CopyFrom(model)
    _graph(wide.graph)
    for function in wide.functions:
        _nodes(function.node)
        _types(info.type for info in function.value_info)
        _attributes(function.attribute_proto)
    return wide


def _graph(graph: Any) -> None:
    for values in (graph.input, graph.output, graph.value_info):
        _types(value.type for value in values)
    for tensor in graph.initializer:
        _tensor(tensor)
    for sparse in graph.sparse_initializer:
        _tensor(sparse.values)
    _nodes(graph.node)


def _nodes(nodes: Any) -> None:
    for node in nodes:
        _attributes(node.attribute)
        if node.domain in ("", "ai.onnx"):
            _node(node)


def _attributes(attributes: Any) -> None:
    for attribute in attributes:
        if attribute.HasField("t"):
            _tensor(attribute.t)
        if attribute.HasField("sparse_tensor"):
            _tensor(attribute.sparse_tensor.values)
        if attribute.HasField("tp"):
            _types([attribute.tp])
        if attribute.HasField("g"):
            _graph(attribute.g)
        for tensor in attribute.tensors:
            _tensor(tensor)
        for sparse in attribute.sparse_tensors:
            _tensor(sparse.values)
        for graph in attribute.graphs:
            _graph(graph)
        _types(attribute.type_protos)


def _node(node: Any) -> None:
    from onnx import helper, numpy_helper

    given = {attribute.name: attribute for attribute in node.attribute}
    for name in _TYPE_ATTRIBUTES & given.keys():
        given[name].i = WIDER.get(given[name].i, given[name].i)
    missing = _FLOAT_BY_DEFAULT.get(node.op_type)
    if missing and missing not in given:
        node.attribute.append(helper.make_attribute(missing, _DOUBLE))
    if node.op_type == "ConstantOfShape" and "value" not in given:
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
    if node.op_type == "Constant":
        for name in {"value_float", "value_floats"} & given.keys():
            # The constant is the float32 value of the attribute; only computations with it are wider.
            number = given[name].f if name == "value_float" else list(given[name].floats)
            given[name].CopyFrom(
                helper.make_attribute("value", numpy_helper.from_array(np.array(number, np.float64)))
            )


def _types(protos: Iterable[Any]) -> None:
    for proto in protos:
        for holder in _element_types(proto):
            holder.elem_type = WIDER.get(holder.elem_type, holder.elem_type)


def _element_types(proto: Any) -> Iterator[Any]:
    """The tensor types inside a TypeProto, also in sequences, optionals and maps."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(proto, kind)
    elif kind in ("sequence_type", "optional_type"):
        yield from _element_types(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        yield from _element_types(proto.map_type.value_type)


def _tensor(tensor: Any) -> None:
    from onnx import numpy_helper

    wider = WIDER.get(tensor.data_type)
    if wider is None:
        return
    name = tensor.name
    array = numpy_helper.to_array(tensor).astype(np.float64 if wider == _DOUBLE else np.complex128)
    tensor.CopyFrom(numpy_helper.from_array(array, name))
