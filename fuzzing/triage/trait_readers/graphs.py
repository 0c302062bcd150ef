"""The traits of operator graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache

import onnx

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.errors import UnreadableError
from fuzzing.graph import Graph, Node
from fuzzing.graph.canonical_form import canonicalize
from fuzzing.graph.ir import Attribute
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import ABSENT, UNKNOWN
from fuzzing.triage.operator_families import CAPTURES
from fuzzing.triage.proven_needs import find_proven_needs, positive_values
from fuzzing.triage.traits import Traits, dtypes_of, register_traits, shape_needs, traits_from_provenance

#: Characters of a pattern; longer ones are digests. Reduced graphs have one to three operators, whose
#: patterns are shorter.
_MAX_PATTERN = 120

#: Element types that need no mention: a reduction turns others of their family into these where it can.
_COMMON = frozenset({"float32", "int64", "bool", ABSENT.dtype, UNKNOWN.dtype})

#: Attributes and optional inputs of which one has to be there (ONNX operator reference).
_EITHER: dict[str, frozenset[str]] = {
    "Constant": frozenset(
        f"value{kind}" for kind in ("", "_float", "_floats", "_int", "_ints", "_string", "_strings")
    ),
    "Resize": frozenset({"scales", "sizes"}),
    "Split": frozenset({"num_outputs", "split"}),
}

#: Lists that the reference gives a default in words, not in the schema: each number is this.
_DEFAULT_NUMBERS = {"dilations": 1, "output_padding": 0, "pads": 0, "strides": 1}


@register_traits(OnnxModel.kind)
def traits(case: TestCase) -> Traits:
    """The traits of an ONNX model; from its provenance if it is no graph of operators."""
    assert isinstance(case.program, OnnxModel)
    try:
        named = from_onnx(case.program.model)
        graph = canonicalize(named)
    except UnreadableError:
        return traits_from_provenance(case)
    given = [given for _, given in case.inputs]
    operators = tuple(sorted(set(_operators(graph))))
    proven = find_proven_needs(case, named, lambda node: _schema_of(node, named))
    return Traits(
        pattern(graph),
        dtypes_of(given),
        tuple(sorted(set(_needs(graph)))),
        operators,
        proven=tuple(sorted(proven.attributes)),
        proven_inputs=tuple(sorted(proven.inputs)),
    )


def pattern(graph: Graph) -> str:
    """The operators of a canonical graph, each with those that feed it: `Reshape(Transpose)`.

    Which of a node's operands they feed makes no difference, nor how often: a pattern that a compiler looks
    for is mostly looked for on both sides. Inputs and constants are left out. Bodies are in
    brackets: `Loop[Elu](Abs)`.
    """
    patterns: dict[int, str] = {}
    for node in graph.nodes:
        fed = sorted({patterns[edge] for edge in node.used_edges() if edge in patterns})
        name = node.op + _subgraph_patterns(node)
        text = f"{name}({', '.join(fed)})" if fed else name
        if len(text) > _MAX_PATTERN:
            text = f"{node.op}(#{hashlib.sha256(text.encode()).hexdigest()[:12]})"
        patterns.update(dict.fromkeys(node.outputs, text))
    used = {edge for node in graph.nodes for edge in node.used_edges()}
    ends = {patterns[edge] for node in graph.nodes for edge in node.outputs if not used & set(node.outputs)}
    return "; ".join(sorted(ends))


def _subgraph_patterns(node: Node) -> str:
    """The patterns of a node's bodies, each once; "" if it has none, or they do nothing."""
    held = sorted({*filter(None, (pattern(body.graph) for body in node.subgraphs()))})
    return f"[{' | '.join(held)}]" if held else ""


def _operators(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.op
        for body in node.subgraphs():
            yield from _operators(body.graph)


def _needs(graph: Graph) -> Iterator[str]:
    yield from shape_needs(graph.types[edge].lengths for edge in graph.inputs if graph.types[edge].static)
    yield from {type_.dtype for type_ in graph.types} - _COMMON
    for node in graph.nodes:
        yield from _node_needs(node, graph)


def _node_needs(node: Node, graph: Graph) -> Iterator[str]:
    schema = _schema_of(node, graph)
    for name, value in node.attributes.items():
        if _is_default(schema, name, value):
            continue  # written out or not, the program is the same
        if isinstance(value, str) or not _is_mandatory(node, schema, name):
            yield f"{node.op}.{name}{_text_value(value)}"
            if positive_values(value, None) and not positive_values(_default(schema, name), None):
                yield f"{node.op}.{name} negative"
    given = [edge for edge in node.inputs if edge is not None]
    if len(set(given)) < len(given):
        yield f"{node.op} given one tensor twice"
    if any(body.captures for body in node.subgraphs()):
        yield f"{node.op} {CAPTURES}"
    if node.op == "Attention" and _shares_keys(node, graph):
        yield "Attention shares keys"
    if schema is None:
        return
    for place, formal in enumerate(schema.inputs[: len(node.inputs)]):
        optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if optional and node.inputs[place] is not None and formal.name not in _EITHER.get(node.op, ()):
            yield f"{node.op}.{formal.name}"
    shapes = {graph.types[edge].shape for edge in given if graph.types[edge] != ABSENT}
    if len(shapes) > 1 and "broadcasting" in (schema.doc or ""):
        yield f"{node.op} broadcasts"


def _shares_keys(node: Node, graph: Graph) -> bool:
    """Whether several heads of queries have the keys of one head ("grouped query attention")."""
    queries, keys = (node.attributes.get(f"{name}_num_heads") for name in ("q", "kv"))
    if queries is not None and keys is not None:
        return queries != keys
    q, k = (None if edge is None else graph.types[edge].shape for edge in node.inputs[:2])
    return q is not None and k is not None and len(q) == len(k) == 4 and q[1] != k[1]


def _text_value(value: Attribute) -> str:
    """The value of a textual attribute: it chooses among algorithms."""
    return f"={value}" if isinstance(value, str) else ""


def _is_default(schema: onnx.defs.OpSchema | None, name: str, value: Attribute) -> bool:
    """Whether an attribute has the value that holds without it."""
    if schema is None or name not in schema.attributes or schema.attributes[name].required:
        return False
    default = schema.attributes[name].default_value
    if default.type:
        return bool(value == _default_value(default))
    return name in _DEFAULT_NUMBERS and isinstance(value, tuple) and set(value) <= {_DEFAULT_NUMBERS[name]}


def _default(schema: onnx.defs.OpSchema | None, name: str) -> Attribute:
    """An attribute's default; 0 if it has none."""
    if schema is None or name not in schema.attributes or not schema.attributes[name].default_value.type:
        return 0
    return _default_value(schema.attributes[name].default_value) or 0


def _default_value(default: onnx.AttributeProto) -> Attribute | None:
    """A schema's default as the graph reader gives attributes; None for tensors and graphs."""
    value = onnx.helper.get_attribute_value(default)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (int, float)):
        return value
    return None


def _is_mandatory(node: Node, schema: onnx.defs.OpSchema | None, name: str) -> bool:
    """Whether the operator cannot be without an attribute, so that having it is no evidence."""
    if schema is None or name not in schema.attributes:
        return False
    return schema.attributes[name].required or name in _EITHER.get(node.op, ())


def _schema_of(node: Node, graph: Graph) -> onnx.defs.OpSchema | None:
    """The schema of a node's operator; None for one that ONNX does not know."""
    version = graph.opset if not node.domain else graph.opsets.get(node.domain, 1)
    return _schema(node.op, version, node.domain)


@lru_cache(maxsize=512)
def _schema(op: str, opset: int, domain: str) -> onnx.defs.OpSchema | None:
    """The operator's schema; None for one that ONNX does not know."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None
