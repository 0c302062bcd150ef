"""ONNX models as coverage sees them: scopes of nodes, with the shape and dtype of whatever they consume.

A scope is a graph, or the body of an If, Loop or Scan; edges stay within one. Functions of the model are
inlined first, as compilers do. Shapes are those that the model tells; where it leaves some out, ONNX's shape
inference adds what it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorShapeProto

from fuzzing.errors import UsageError

#: A dimension that is symbolic or not known.
UNKNOWN = -1
#: Domains that are spelled two ways in models; both are ONNX's own (onnx/common/constants.h).
_DEFAULT_DOMAINS = ("", "ai.onnx")
#: An attribute of more bytes is told by its digest: a Constant's value may have millions.
_LONG = 64
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)

Shape = tuple[int, ...]
Attributes = tuple[bytes, ...]


class BrokenModelError(UsageError):
    """A file that should be an ONNX model is none."""


class TensorType(NamedTuple):
    """What is known of a tensor: ONNX's number of its dtype, its shape or None where not even its rank is."""

    dtype: int
    shape: Shape | None


#: Of tensors that nothing is known of, and of sequences, maps and optionals.
NOTHING = TensorType(0, None)


class Node(NamedTuple):
    """One node; optional inputs and outputs that it leaves out are not among its names.

    operator    its type; outside ONNX's default domain `domain::Type`
    attributes  its attributes as bytes, sorted by name; of those that hold graphs only the name
    types       what is known of `inputs`, one for one
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes
    types: tuple[TensorType, ...]


Scope = list[Node]


def read(path: Path) -> ModelProto:
    """The model in a file, without what it keeps in other files. Raises BrokenModelError."""
    try:
        model: ModelProto = ModelProto.FromString(path.read_bytes())
    except OSError as error:
        raise BrokenModelError(f"cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise BrokenModelError("is no ONNX model: its protobuf message is corrupt or cut short") from error
    if not model.HasField("graph"):
        raise BrokenModelError("holds no graph")
    return model


def scopes_of(model: ModelProto) -> list[Scope]:
    """The model's scopes, its outermost graph first."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    scopes = list(_scopes(model.graph, {}))
    if all(NOTHING not in node.types for scope in scopes for node in scope):
        return scopes
    return list(_scopes(_inferred(model).graph, {}))


def _inferred(model: ModelProto) -> ModelProto:
    """The model with the shapes that ONNX infers, or as it is where ONNX refuses it."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError):  # ValueError: larger than a protobuf may be
        return model


def _scopes(graph: GraphProto, outer: Mapping[str, TensorType]) -> Iterator[Scope]:
    types = {**outer, **_types(graph)} if outer else _types(graph)
    inner: list[GraphProto] = []
    yield [_node(node, types, inner) for node in graph.node]
    for body in inner:
        yield from _scopes(body, types)


def _node(node: NodeProto, types: Mapping[str, TensorType], inner: list[GraphProto]) -> Node:
    inputs = tuple(filter(None, node.input))
    domain = node.domain
    return Node(
        node.name,
        node.op_type if domain in _DEFAULT_DOMAINS else f"{domain}::{node.op_type}",
        inputs,
        tuple(filter(None, node.output)),
        _attributes(node, inner) if node.attribute else (),
        tuple([types.get(name, NOTHING) for name in inputs]),
    )


def _attributes(node: NodeProto, inner: list[GraphProto]) -> Attributes:
    """The attributes, their default values included if the node spells them out; adds graphs to `inner`."""
    found = []
    for attribute in node.attribute:
        if attribute.type in _GRAPHS:
            inner.extend([attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs)
            found.append(attribute.name.encode())
            continue
        if attribute.doc_string:
            plain = AttributeProto()
            plain.CopyFrom(attribute)
            plain.ClearField("doc_string")
            attribute = plain  # noqa: PLW2901 - what was read stays as it was
        # A message begins with its name: sorting the bytes sorts by name.
        data = attribute.SerializeToString(deterministic=True)
        found.append(data if len(data) <= _LONG else blake2b(data, digest_size=16).digest())
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def _types(graph: GraphProto) -> dict[str, TensorType]:
    """What a graph tells of its tensors."""
    found: dict[str, TensorType] = {}
    for tensor in graph.initializer:
        found[tensor.name] = TensorType(tensor.data_type, tuple(tensor.dims))
    for sparse in graph.sparse_initializer:
        found[sparse.values.name] = TensorType(sparse.values.data_type, tuple(sparse.dims))
    for values in (graph.input, graph.value_info, graph.output):
        for value in values:
            name, tensor_type = value.name, value.type.tensor_type
            if name not in found and tensor_type.elem_type:
                shape = _shape(tensor_type.shape) if tensor_type.HasField("shape") else None
                found[name] = TensorType(tensor_type.elem_type, shape)
    return found


def _shape(shape: TensorShapeProto) -> Shape:
    # Zero is a length, and also what an unknown one reads as.
    return tuple([dim.dim_value or (0 if dim.HasField("dim_value") else UNKNOWN) for dim in shape.dim])
