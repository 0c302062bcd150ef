"""Converts a graph to ONNX.

Output is deterministic: equal graphs with equal names give equal bytes. An edge without a name is named by
its number, from which the reader restores it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from fuzzing.errors import UnwritableError
from fuzzing.graph.ir import Attribute, Constant, Graph, Node, Subgraph, TypeValue
from fuzzing.graph.onnx_types import DTYPES, fill_tensor, proto_of
from fuzzing.graph.types import ABSENT, UNKNOWN, TensorType

PRODUCER = "assay"

#: From this format on an initializer need not be an input too (onnx, docs/IR.md).
_OLDEST_IR = 4


def to_onnx(graph: Graph) -> ModelProto:
    """The model, at the graph's own opsets; raises UnwritableError."""
    return _model(graph, outputs=True, body_inputs=True)


def to_onnx_untyped(graph: Graph, *, body_inputs: bool = True) -> ModelProto:
    """The model without the types of outputs, the graph's and its bodies', for ONNX to infer.

    body_inputs  whether the types of the bodies' inputs are written
    """
    return _model(graph, outputs=False, body_inputs=body_inputs)


def _model(graph: Graph, *, outputs: bool, body_inputs: bool) -> ModelProto:
    model = ModelProto()
    opsets = {"": graph.opset, **graph.opsets}
    model.ir_version = _ir_version(tuple(sorted(opsets.items())))
    model.producer_name = PRODUCER
    for domain, version in sorted(opsets.items()):
        entry = model.opset_import.add()
        entry.domain, entry.version = domain, version
    model.graph.name = "graph"
    _Writer(opsets, outputs, body_inputs).write(graph, model.graph, {}, "v", frozenset())
    return model


def to_bytes(graph: Graph) -> bytes:
    """The model's bytes."""
    data: bytes = to_onnx(graph).SerializeToString(deterministic=True)
    return data


@cache
def _ir_version(opsets: tuple[tuple[str, int], ...]) -> int:
    """The oldest format that may hold these opsets: older runtimes refuse newer formats."""
    entries = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets]
    return max(_OLDEST_IR, onnx.helper.find_min_ir_version_for(entries, ignore_unknown=True))


#: Operators of whose outputs onnx's inference infers nothing, or not all, although our types do; what follows
#: them it would infer wrongly (Einsum on an unknown rank), or not at all. So the model declares their types.
_UNTYPED = frozenset({"Attention", "Compress", "GroupNormalization", "Loop", "MaxUnpool"})


def _add_type_hint(graph: Graph, node: Node, proto: GraphProto, names: list[str]) -> None:
    for edge in node.outputs:
        if graph.types[edge].static and edge not in graph.outputs:
            _declare(proto.value_info.add(), names[edge], graph.types[edge], True)


class _Writer:
    def __init__(self, opsets: Mapping[str, int], outputs: bool, body_inputs: bool) -> None:
        self._opsets = opsets
        self._outputs = outputs
        self._body_inputs = body_inputs

    def write(
        self, graph: Graph, proto: GraphProto, outer: Mapping[int, str], prefix: str, taken: frozenset[str]
    ) -> None:
        """Writes a graph whose captured edges are named as in `outer`; `taken` are all names around it."""
        names = _names(graph, outer, prefix, taken)
        main = not taken
        for edge in graph.inputs:
            type_ = graph.types[edge] if main or self._body_inputs else UNKNOWN
            _declare(proto.input.add(), names[edge], type_, main)
        for edge, constant in sorted(graph.constants.items()):
            tensor = proto.initializer.add()
            tensor.name = names[edge]
            fill_tensor(tensor, constant)
        for number, node in enumerate(graph.nodes):
            made = proto.node.add()
            made.op_type = node.op
            first = node.outputs[0] if node.outputs else -1
            made.name = names[first] if first in graph.names else f"{prefix}n{number}_{_identifier(node.op)}"
            if node.domain:
                made.domain = node.domain
            made.input.extend(["" if edge is None else names[edge] for edge in node.inputs])
            made.output.extend([names[edge] for edge in node.outputs])
            if node.attributes:
                self._attributes(node, made, names, taken)
            if node.op in _UNTYPED and self._outputs:
                _add_type_hint(graph, node, proto, names)
        for edge in graph.outputs:
            type_ = graph.types[edge] if self._outputs else UNKNOWN
            _declare(proto.output.add(), names[edge], type_, main and self._outputs)

    def _attributes(self, node: Node, made: NodeProto, names: list[str], taken: frozenset[str]) -> None:
        for name, value in sorted(node.attributes.items()):
            attribute = made.attribute.add()
            attribute.name = name
            if isinstance(value, Subgraph):
                attribute.type = AttributeProto.GRAPH
                self._body(value, attribute.g, f"{made.name}_{name}", names, taken)
            elif isinstance(value, tuple) and not value:
                attribute.type = _attribute_type(node.op, node.domain, self._opsets.get(node.domain, 1), name)
            else:
                _set(attribute, value)

    def _body(
        self, body: Subgraph, proto: GraphProto, name: str, names: list[str], taken: frozenset[str]
    ) -> None:
        proto.name = name
        feeds = dict(zip(body.graph.captured, [names[edge] for edge in body.captures], strict=True))
        if feeds:
            proto.doc_string = captures_text(feeds)
        self.write(body.graph, proto, feeds, f"{name}_v", taken.union(names))


def captures_text(feeds: Mapping[int, str]) -> str:
    """Metadata that lists the edges a body captures, in order, unused ones included.

    feeds  the name that feeds each captured edge
    """
    return json.dumps({"captures": [[name, edge] for edge, name in feeds.items()]})


@cache
def _identifier(op: str) -> str:
    return re.sub(r"\W", "_", op, flags=re.ASCII)


def _names(graph: Graph, outer: Mapping[int, str], prefix: str, taken: frozenset[str]) -> list[str]:
    """Unique names by edge: the given one, or one made of its number; none of `taken`."""
    names = [f"{prefix}{edge}" for edge in range(len(graph.types))]
    if graph.names or not taken.isdisjoint(names):
        used = set(taken)
        for edge, name in sorted(graph.names.items()):
            names[edge] = _unused(name, used)
        for edge in range(len(names)):
            if edge not in graph.names:
                names[edge] = _unused(names[edge], used)
    for edge, name in outer.items():
        names[edge] = name
    for node in graph.nodes:
        for edge in node.outputs:
            if graph.types[edge] is ABSENT or graph.types[edge] == ABSENT:
                names[edge] = ""
    return names


def _unused(name: str, used: set[str]) -> str:
    while not name or name in used:
        name += "_"
    used.add(name)
    return name


def _declare(proto: onnx.ValueInfoProto, name: str, type_: TensorType, needed: bool) -> None:
    proto.name = name
    if type_ != UNKNOWN:
        proto.type.CopyFrom(proto_of(type_))
    elif needed:
        raise UnwritableError(f"nothing is known of the type of {name}, an input or output of the model")


@cache
def _attribute_type(op: str, domain: str, opset: int, name: str) -> int:
    try:
        schema = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return AttributeProto.INTS
    found = schema.attributes.get(name)
    return AttributeProto.INTS if found is None else int(found.type.value)  # type: ignore[attr-defined]


def _set(proto: AttributeProto, value: Attribute) -> None:
    if isinstance(value, int):
        proto.type, proto.i = AttributeProto.INT, value
    elif isinstance(value, float):
        proto.type, proto.f = AttributeProto.FLOAT, value
    elif isinstance(value, str):
        proto.type, proto.s = AttributeProto.STRING, value.encode("utf-8", "surrogateescape")
    elif isinstance(value, Constant):
        proto.type = AttributeProto.TENSOR
        fill_tensor(proto.t, value)
    elif isinstance(value, TypeValue):
        proto.type = AttributeProto.TYPE_PROTO
        proto.tp.CopyFrom(proto_of(value.type))
    elif isinstance(value, tuple):
        _set_many(proto, value)
    else:
        raise TypeError(f"an attribute cannot be {value!r}")


def _set_many(proto: AttributeProto, values: tuple[int, ...] | tuple[float, ...] | tuple[str, ...]) -> None:
    first = values[0]
    if isinstance(first, int):
        proto.type = AttributeProto.INTS
        proto.ints.extend(values)
    elif isinstance(first, float):
        proto.type = AttributeProto.FLOATS
        proto.floats.extend(values)
    else:
        proto.type = AttributeProto.STRINGS
        proto.strings.extend([value.encode("utf-8", "surrogateescape") for value in values])  # type: ignore[union-attr]


__all__ = ["DTYPES", "PRODUCER", "captures_text", "to_bytes", "to_onnx", "to_onnx_untyped"]
