"""Converts ONNX to a graph.

Everything a compiler sees is kept. Dropped are the encoding of tensors, node names, symbolic lengths,
value_info and documentation. Models written by `onnx_writer` get their edge numbers back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from fuzzing.errors import UnreadableError
from fuzzing.graph.ir import Attribute, Graph, Node, Subgraph, TypeValue, to_single_precision
from fuzzing.graph.onnx_types import constant_of, type_of
from fuzzing.graph.type_inference import complete_types
from fuzzing.graph.types import ABSENT, UNKNOWN, TensorType

_ALIAS = "ai.onnx"  # of the default domain (onnx, docs/IR.md)
#: Stands for the default domain's opset in a model that uses none of its operators.
_UNUSED_OPSET = 13


def from_onnx(model: ModelProto | bytes) -> Graph:
    """The graph of a model that passes ONNX's checker; raises UnreadableError.

    Types come from ONNX's inference and, where that leaves lengths open, from operator specifications.
    Local functions are inlined. Sparse tensors and external data are refused.
    """
    return complete_types(read(model, strict=False))


def read(model: ModelProto | bytes, *, strict: bool) -> Graph:
    """The graph with the types that ONNX infers.

    strict  raise onnx.shape_inference.InferenceError where inference fails instead of ignoring it
    """
    if isinstance(model, bytes):
        model = _parse(model)
    refuse_crashing(model.graph)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model, False)
    try:
        model = onnx.shape_inference.infer_shapes(
            model, check_type=strict, strict_mode=strict, data_prop=True
        )
    except onnx.shape_inference.InferenceError as error:
        if strict:
            raise
        raise UnreadableError(f"ONNX cannot infer the model's types: {error}") from None
    opsets = {item.domain if item.domain != _ALIAS else "": item.version for item in model.opset_import}
    opset = opsets.pop("", _UNUSED_OPSET)
    scope = _Scope(model.graph, opset, opsets, None)
    return scope.read("v")


def _parse(data: bytes) -> ModelProto:
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise UnreadableError(f"this is no ONNX model: {error}") from None


def refuse_crashing(graph: GraphProto) -> None:
    """Raises UnreadableError for what may crash ONNX's inference, and with it the process (onnx 1.23.2)."""
    for item in graph.sparse_initializer:
        raise UnreadableError(
            f"the initializer {item.values.name!r} is sparse, which no graph holds; make it dense"
        )
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                refuse_crashing(attribute.g)
            # Reads beyond the lengths of as many outputs as the attribute says.
            if node.op_type == "Split" and attribute.name == "num_outputs" and attribute.i < len(node.output):
                raise UnreadableError(
                    f"a Split into {attribute.i} by its num_outputs has {len(node.output)} outputs"
                )


class _Scope:
    """State of reading one graph: its edges so far, and the enclosing scope."""

    def __init__(
        self, proto: GraphProto, opset: int, opsets: Mapping[str, int], outer: _Scope | None
    ) -> None:
        self._proto = proto
        self._opset = opset
        self._opsets = opsets
        self._outer = outer
        self._types: list[TensorType] = []
        self._edges: dict[str, int] = {}  # the last edge of each name, this graph's and what it captures
        self._names: dict[int, str] = {}
        self._captured: dict[int, int] = {}  # the enclosing graph's edges that feed ours
        self._listed_captures: dict[int, int] = {}  # the number each captured edge had where it was written
        values: Iterable[ValueInfoProto] = (*proto.value_info, *proto.input, *proto.output)
        self._known = {item.name: type_of(item.type) for item in values}

    @property
    def captures(self) -> tuple[int, ...]:
        """The enclosing graph's edges that this one uses."""
        return tuple(self._captured.values())

    def read(self, prefix: str) -> Graph:
        proto = self._proto
        self._list_captures()
        inputs = tuple([self._define(item.name) for item in proto.input])
        constants = {}
        for tensor in proto.initializer:
            constant = constant_of(tensor)
            edge = self._edges[tensor.name] if tensor.name in self._edges else self._define(tensor.name)
            self._types[edge] = constant.type
            constants[edge] = constant
        nodes = tuple([self._node(node) for node in proto.node])
        outputs = tuple([self.find(item.name) for item in proto.output])
        graph = Graph(
            opset=self._opset,
            types=tuple(self._types),
            inputs=inputs,
            constants=constants,
            nodes=nodes,
            outputs=outputs,
            captured=tuple(self._captured),
            opsets=dict(self._opsets) if self._outer is None else {},
        )
        return self._restore_numbers(graph, prefix)

    def find(self, name: str) -> int:
        found = self._edges.get(name)
        if found is not None:
            return found
        if self._outer is None:
            raise UnreadableError(f"nothing defines {name!r} before it is used")
        return self._capture(name)

    def _capture(self, name: str) -> int:
        assert self._outer is not None
        source = self._outer.find(name)
        edge = self._edge(self._outer._types[source])
        self._captured[edge] = source
        self._edges[name] = edge
        return edge

    def _list_captures(self) -> None:
        if self._outer is None or not self._proto.doc_string:
            return
        try:
            listed = json.loads(self._proto.doc_string)["captures"]
            pairs = [(str(name), int(edge)) for name, edge in listed]
        except (ValueError, TypeError, LookupError):
            return  # documentation of someone else's
        for name, number in pairs:
            self._listed_captures[self._capture(name)] = number

    def _edge(self, type_: TensorType) -> int:
        self._types.append(type_)
        return len(self._types) - 1

    def _define(self, name: str) -> int:
        if not name:
            return self._edge(ABSENT)
        edge = self._edge(self._known.get(name, UNKNOWN))
        self._edges[name] = edge
        self._names[edge] = name
        return edge

    def _node(self, proto: NodeProto) -> Node:
        inputs = tuple([self.find(name) if name else None for name in proto.input])
        attributes = {item.name: self._attribute(item, proto) for item in proto.attribute}
        outputs = tuple([self._define(name) for name in proto.output])
        domain = "" if proto.domain == _ALIAS else proto.domain
        return Node(proto.op_type, inputs, outputs, attributes, domain)

    def _attribute(self, proto: AttributeProto, node: NodeProto) -> Attribute:
        if proto.type == AttributeProto.GRAPH:
            body = _Scope(proto.g, self._opset, self._opsets, self)
            graph = body.read(f"{node.name}_{proto.name}_v")
            return Subgraph(graph, body.captures)
        reader = _ATTRIBUTES.get(proto.type)
        if reader is None:
            kind = AttributeProto.AttributeType.Name(proto.type).lower()
            raise UnreadableError(
                f"{node.op_type}'s attribute {proto.name} holds {kind}, which no graph holds"
            )
        return reader(proto)

    def _restore_numbers(self, graph: Graph, prefix: str) -> Graph:
        """The graph with the writer's edge numbers if names hold them, else with captured edges first."""
        numbers = self._numbers_from_names(prefix, len(graph.types))
        if numbers is not None and all(
            max((numbers[edge] for edge in node.used_edges()), default=-1)
            < min((numbers[edge] for edge in node.outputs), default=len(numbers))
            for node in graph.nodes
        ):
            return self._renumber(graph, numbers, {})
        others = [edge for edge in range(len(graph.types)) if edge not in self._captured]
        numbers = {edge: number for number, edge in enumerate((*self._captured, *others))}
        return self._renumber(graph, numbers, {numbers[edge]: name for edge, name in self._names.items()})

    def _numbers_from_names(self, prefix: str, count: int) -> dict[int, int] | None:
        """The edge numbers encoded in names; None if the writer did not make up all of them.

        Nameless edges (omitted optional outputs) take the missing numbers.
        """
        numbers = dict(self._listed_captures)
        for edge, name in self._names.items():
            number = name[len(prefix) :]
            if not (name.startswith(prefix) and number.isdecimal() and str(int(number)) == number):
                return None
            numbers[edge] = int(number)
        free = iter(sorted(set(range(count)) - set(numbers.values())))
        for edge in range(count):
            if edge not in numbers:
                numbers[edge] = next(free, count)
        return numbers if sorted(numbers.values()) == list(range(count)) else None

    def _renumber(self, graph: Graph, numbers: Mapping[int, int], names: Mapping[int, str]) -> Graph:
        if all(old == new for old, new in numbers.items()):
            return replace(graph, names=names)
        self._captured = {numbers[edge]: source for edge, source in self._captured.items()}
        return replace(graph.renumber(numbers), names=names)


def _texts(values: Iterable[bytes]) -> tuple[str, ...]:
    return tuple([value.decode("utf-8", "surrogateescape") for value in values])


_ATTRIBUTES: dict[int, Callable[[AttributeProto], Attribute]] = {
    AttributeProto.INT: lambda proto: int(proto.i),
    AttributeProto.FLOAT: lambda proto: to_single_precision(proto.f),
    AttributeProto.STRING: lambda proto: _texts([proto.s])[0],
    AttributeProto.TENSOR: lambda proto: constant_of(proto.t),
    AttributeProto.TYPE_PROTO: lambda proto: TypeValue(type_of(proto.tp)),
    AttributeProto.INTS: lambda proto: tuple(proto.ints),
    AttributeProto.FLOATS: lambda proto: tuple([to_single_precision(value) for value in proto.floats]),
    AttributeProto.STRINGS: lambda proto: _texts(proto.strings),
}
