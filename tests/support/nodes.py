"""Nodes made by hand, to ask a specification what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from fuzzing.graph import TensorType, operators
from fuzzing.graph.ir import Builder, Constant
from fuzzing.graph.site import Site


def placed(
    name: str,
    inputs: list[TensorType | np.ndarray[Any, Any] | None],
    attributes: dict[str, Any] | None = None,
    opset: int = 21,
    outputs: int = 1,
) -> Site:
    """The place of a node whose inputs are placeholders, constants or left out."""
    operator = operators.named(name, opset)
    builder = Builder(opset)
    edges: list[int | None] = []
    for item in inputs:
        if item is None:
            edges.append(None)
        elif isinstance(item, TensorType):
            edges.append(builder.placeholder(item))
        else:
            edges.append(builder.constant(Constant(item.dtype.name, item)))
    types = (TensorType("float32", None),) * outputs
    builder.node(name, tuple(edges), types, attributes or {})
    graph = builder.finish(())
    return Site.of(operator, graph, graph.nodes[0])


def shapes(
    name: str,
    inputs: list[TensorType | np.ndarray[Any, Any] | None],
    attributes: dict[str, Any] | None = None,
    opset: int = 21,
    outputs: int = 1,
) -> list[tuple[int | None, ...] | None]:
    """The shapes that the specification gives a node's outputs."""
    site = placed(name, inputs, attributes, opset, outputs)
    return [type_.shape for type_ in site.operator.infer(site)]


def inferred(name: str, lead: tuple[int, ...], constants: list[np.ndarray[Any, Any]]) -> tuple[int, ...]:
    """What onnx's own inference says of a node's only output; its first input is no constant."""
    tensors = [numpy_helper.from_array(array, f"c{place}") for place, array in enumerate(constants)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(name, ["x", *(tensor.name for tensor in tensors)], ["y"])],
        "graph",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, lead)],
        [onnx.helper.make_empty_tensor_value_info("y")],
        tensors,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    found = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return tuple(dim.dim_value for dim in found.graph.output[0].type.tensor_type.shape.dim)


def floats(*shape: int | None) -> TensorType:
    """The type of a tensor of float32."""
    return TensorType("float32", shape)


def longs(*values: int) -> np.ndarray[Any, Any]:
    """A vector of int64."""
    return np.array(values, np.int64)


__all__ = ["floats", "inferred", "longs", "placed", "shapes"]
