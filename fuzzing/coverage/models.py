"""ONNX models as coverage sees them: scopes of nodes, with the shape and dtype of whatever they consume.

A scope is a graph, or the body of an If, Loop or Scan; edges stay within one. Functions of the model are
inlined first, as compilers do. Shapes are those that the model declares; where some are missing, ONNX's shape
inference adds what it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import onnx
import onnx.checker
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto

from fuzzing.errors import UsageError

#: A dimension that is symbolic or not known.
UNKNOWN = -1
#: Domains with two spellings in models; both are ONNX's own (onnx/common/constants.h).
_DEFAULT_DOMAINS = ("", "ai.onnx")
#: A longer attribute is replaced by its digest: a Constant may have millions of bytes.
_LONG = 64
#: What ONNX's own code raises at models that are not valid; ValueError also where one is too large for it.
_REFUSALS = (
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    RuntimeError,
    ValueError,
    IndexError,
)
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)

Shape = tuple[int, ...]
Attributes = tuple[bytes, ...]


class InvalidModelError(UsageError):
    """A file that should be an ONNX model is none."""


class TensorType(NamedTuple):
    """What is known of a tensor: ONNX's number of its dtype, its shape or None where not even its rank is."""

    dtype: int
    shape: Shape | None


#: Of tensors that nothing is known of, and of sequences, maps and optionals.
UNTYPED = TensorType(0, None)


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
    """The model in a file, without what it keeps in other files. Raises InvalidModelError."""
    try:
        model: ModelProto = ModelProto.FromString(path.read_bytes())
    except OSError as error:
        raise InvalidModelError(f"cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise InvalidModelError("is no ONNX model: its protobuf message is corrupt or cut short") from error
    if not model.HasField("graph"):
        raise InvalidModelError("holds no graph")
    return model


def extract_scopes(model: ModelProto, infer: bool = True) -> list[Scope]:
    """The model's scopes, its outermost graph first. Raises InvalidModelError.

    infer  whether to ask ONNX for shapes that the model does not declare; of a few models ONNX itself dies
    """
    if model.functions:
        model = _inline_functions(model)
    reading = _ModelReader()
    scopes = list(reading.scopes(model.graph, {}))
    if infer and not reading.complete:
        scopes = list(_ModelReader().scopes(_infer_shapes(model).graph, {}))
    if not all(_is_text(node.name) and _is_text(node.operator) for scope in scopes for node in scope):
        raise InvalidModelError("names a node or an operator in something else than UTF-8")
    return scopes


def _is_text(value: object) -> bool:
    """Whether a message's text is one: protobuf gives bytes for what is no UTF-8, whatever its type."""
    return isinstance(value, str)


def _inline_functions(model: ModelProto) -> ModelProto:
    try:
        return onnx.inliner.inline_local_functions(model)
    except _REFUSALS as error:
        why = str(error).partition("\n")[0]
        raise InvalidModelError(f"has functions that cannot be inlined: {why}") from error


def _infer_shapes(model: ModelProto) -> ModelProto:
    """The model with the shapes that ONNX infers, or as it is where ONNX refuses it.

    The checker comes first: of some models that it refuses, inference dies (onnx 1.23: an input of no name).
    Data propagation is not asked for: a length of 2⁴⁰ takes all memory there.
    """
    try:
        onnx.checker.check_model(model)
        return onnx.shape_inference.infer_shapes(model)
    except _REFUSALS:
        return model


class _ModelReader:
    """Reads one model. Each access to a message costs: the code counts them.

    complete  whether the model declares the rank of all that it declares or consumes, as far as it was read
    """

    def __init__(self) -> None:
        self.complete = True
        self._inner: list[GraphProto] = []  # bodies met in the scope that is being read

    def scopes(self, graph: GraphProto, outer: Mapping[str, TensorType]) -> Iterator[Scope]:
        """The graph as a scope, then its bodies; `outer` is what is known around it."""
        declared = _types(graph)
        if None in [one.shape for one in declared.values()]:
            self.complete = False
        types = {**outer, **declared} if outer else declared
        self._inner = []
        yield [self._node(node, types) for node in graph.node]
        for body in self._inner:
            yield from self.scopes(body, types)

    def _node(self, node: NodeProto, types: Mapping[str, TensorType]) -> Node:
        inputs, outputs, domain = tuple(node.input[:]), tuple(node.output[:]), node.domain
        if "" in inputs:
            inputs = tuple(filter(None, inputs))
        if "" in outputs:
            outputs = tuple(filter(None, outputs))
        try:
            known = tuple([types[name] for name in inputs])
        except KeyError:
            self.complete = False
            known = tuple([types.get(name, UNTYPED) for name in inputs])
        return Node(
            node.name,
            node.op_type if domain in _DEFAULT_DOMAINS else f"{domain}::{node.op_type}",
            inputs,
            outputs,
            _attributes(attributes, self._inner) if (attributes := node.attribute) else (),
            known,
        )


def _attributes(given: Iterable[AttributeProto], inner: list[GraphProto]) -> Attributes:
    """Attributes, their default values included if the node spells them out; adds graphs to `inner`."""
    found = []
    for attribute in given:
        if attribute.type in _GRAPHS:
            inner.extend([attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs)
            found.append(str(attribute.name).encode())  # see _is_text
            continue
        if attribute.doc_string:
            plain = AttributeProto()
            plain.CopyFrom(attribute)
            plain.ClearField("doc_string")
            attribute = plain  # noqa: PLW2901 - what was read stays as it was
        # A message begins with its name: sorting the bytes sorts by name. It has no maps, so equal ones give
        # equal bytes.
        data = attribute.SerializeToString()
        found.append(data if len(data) <= _LONG else blake2b(data, digest_size=16).digest())
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def _types(graph: GraphProto) -> dict[str, TensorType]:
    """The types that a graph declares, of tensors with a dtype at least."""
    found: dict[str, TensorType] = {}
    for values in (graph.value_info, graph.input, graph.output):
        typed = [(value.name, _type(value.type.SerializeToString())) for value in values]
        found.update([one for one in typed if one[1] is not UNTYPED])
    for stored in graph.initializer:
        found[stored.name] = TensorType(stored.data_type, tuple(stored.dims))
    for sparse in graph.sparse_initializer:
        found[sparse.values.name] = TensorType(sparse.values.data_type, tuple(sparse.dims))
    return found


@lru_cache(maxsize=1 << 16)
def _type(data: bytes) -> TensorType:
    """The content of a TypeProto. Models repeat a few: looking one up by its bytes beats reading it again."""
    tensor = TypeProto.FromString(data).tensor_type
    if not tensor.elem_type:
        return UNTYPED
    if not tensor.HasField("shape"):
        return TensorType(tensor.elem_type, None)
    dims = [dim.dim_value if dim.HasField("dim_value") else UNKNOWN for dim in tensor.shape.dim]
    return TensorType(tensor.elem_type, tuple(dims))
