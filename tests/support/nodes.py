"""Handwritten nodes, also ones that no generator draws, for tests of specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from fuzzing.graph import Attribute, Graph, TensorType, operators
from fuzzing.graph.ir import Builder, Constant
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import NodeContext

#: A placeholder, a constant, or an omitted input.
Given: TypeAlias = TensorType | Constant | np.ndarray[Any, Any] | None


def placed(
    name: str,
    inputs: Sequence[Given],
    attributes: Mapping[str, Attribute] | None = None,
    opset: int = 21,
    outputs: int = 1,
) -> NodeContext:
    """The context of a node."""
    return _site(_graph(name, opset, inputs, attributes, outputs))


def shapes(
    name: str,
    inputs: Sequence[Given],
    attributes: Mapping[str, Attribute] | None = None,
    opset: int = 21,
    outputs: int = 1,
) -> list[tuple[int | None, ...] | None]:
    """The shapes of a node's outputs by its specification."""
    context = placed(name, inputs, attributes, opset, outputs)
    return [type_.shape for type_ in context.operator.infer(context)]


def inferred(
    name: str,
    opset: int,
    inputs: Sequence[Given],
    attributes: Mapping[str, Attribute] | None = None,
    outputs: int = 1,
    known: bool = False,
) -> tuple[TensorType, ...]:
    """The types inferred by the specification, after asserting that onnx infers the same.

    With `known`, onnx must infer all of them.
    """
    graph = _graph(name, opset, inputs, attributes, outputs)
    context = _site(graph)
    found = context.operator.infer(context)
    for type_, dims in zip(found, _by_onnx(graph), strict=True):
        assert not known or (dims is not None and None not in dims), (name, dims)
        if dims is not None:
            assert len(dims) == type_.rank, (name, dims, type_)
            agreed = zip(dims, type_.shape or (), strict=True)
            assert all(theirs in (None, mine) for theirs, mine in agreed), (name, dims, type_)
    return found


def _graph(
    name: str,
    opset: int,
    inputs: Sequence[Given],
    attributes: Mapping[str, Attribute] | None,
    outputs: int,
) -> Graph:
    """A graph of the node, with unknown outputs."""
    builder = Builder(opset)
    edges = tuple([_edge(builder, item) for item in inputs])
    made = builder.node(name, edges, (TensorType("float32", ()),) * outputs, attributes)
    return builder.finish(made)


def _edge(builder: Builder, item: Given) -> int | None:
    if item is None:
        return None
    if isinstance(item, TensorType):
        return builder.placeholder(item)
    return builder.constant(item if isinstance(item, Constant) else Constant(item.dtype.name, item))


def _site(graph: Graph) -> NodeContext:
    (node,) = graph.nodes
    return NodeContext.from_node(operators.get_specification(node.op, graph.opset), graph, node)


def _by_onnx(graph: Graph) -> list[list[int | None] | None]:
    """The lengths of the outputs as far as onnx infers them."""
    model = to_onnx(graph)
    del model.graph.output[:]
    for edge in graph.outputs:
        model.graph.output.add().name = f"v{edge}"
    known = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    tensors = [value.type.tensor_type for value in known.graph.output]
    return [
        [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        if tensor.HasField("shape")
        else None
        for tensor in tensors
    ]


def floats(*shape: int | None) -> TensorType:
    """The type of a tensor of float32."""
    return TensorType("float32", shape)


def longs(*values: int) -> np.ndarray[Any, Any]:
    """A vector of int64."""
    return np.array(values, np.int64)
