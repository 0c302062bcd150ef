"""The traits of operator graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

import onnx

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.graph import Graph, Node
from fuzzing.graph.canonical import canonical
from fuzzing.graph.ir import Attribute
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import ABSENT
from fuzzing.triage.traits import Traits, dtypes_of, register_traits, shape_needs

#: Characters of a pattern; what is inside longer ones is told by a digest alone. Reduced graphs have one to
#: three operators, and no pattern of three is longer.
_MAX_PATTERN = 120


@register_traits(OnnxModel.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a case that is an ONNX model."""
    assert isinstance(case.program, OnnxModel)
    graph = canonical(from_onnx(case.program.model))
    given = [given for _, given in case.inputs]
    operators = tuple(sorted({node.op for node in graph.nodes}))
    return Traits(pattern(graph), dtypes_of(given), tuple(sorted(set(_needs(graph)))), operators)


def pattern(graph: Graph) -> str:
    """The operators of a canonical graph, each with those that feed it: `Reshape(Transpose)`.

    Which of a node's operands they feed makes no difference, nor how often: a pattern that a compiler looks
    for is mostly looked for on both sides. Inputs and constants are not told, nor what bodies hold.
    """
    told: dict[int, str] = {}
    for node in graph.nodes:
        fed = sorted({told[edge] for edge in node.uses() if edge in told})
        text = f"{node.op}({', '.join(fed)})" if fed else node.op
        if len(text) > _MAX_PATTERN:
            text = f"{node.op}(#{hashlib.sha256(text.encode()).hexdigest()[:12]})"
        told.update(dict.fromkeys(node.outputs, text))
    used = {edge for node in graph.nodes for edge in node.uses()}
    ends = {told[edge] for node in graph.nodes for edge in node.outputs if not used & set(node.outputs)}
    return "; ".join(sorted(ends))


def _needs(graph: Graph) -> Iterator[str]:
    yield from shape_needs(graph.types[edge].lengths for edge in graph.inputs if graph.types[edge].static)
    for node in graph.nodes:
        yield from _node_needs(node, graph)


def _node_needs(node: Node, graph: Graph) -> Iterator[str]:
    schema = _schema(
        node.op, graph.opset if not node.domain else graph.opsets.get(node.domain, 1), node.domain
    )
    for name, value in node.attributes.items():
        if schema is None or not _is_default(schema.attributes, name, value):
            yield f"{node.op}.{name}{_mode(value)}"
    given = [edge for edge in node.inputs if edge is not None]
    if len(set(given)) < len(given):
        yield f"{node.op} given one tensor twice"
    if schema is None:
        return
    for place, formal in enumerate(schema.inputs[: len(node.inputs)]):
        optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if optional and node.inputs[place] is not None:
            yield f"{node.op}.{formal.name}"
    shapes = {graph.types[edge].shape for edge in given if graph.types[edge] != ABSENT}
    if len(shapes) > 1 and "broadcasting" in (schema.doc or ""):
        yield f"{node.op} broadcasts"


def _mode(value: Attribute) -> str:
    """What a textual attribute says: it chooses among algorithms."""
    return f"={value}" if isinstance(value, str) else ""


def _is_default(known: Mapping[str, onnx.defs.OpSchema.Attribute], name: str, value: Attribute) -> bool:
    """Whether an attribute says nothing: it has ONNX's default, or the operator cannot be without it."""
    if name not in known:
        return False
    if known[name].required and not isinstance(value, str):
        return True
    default = known[name].default_value
    if not default.name:
        return False
    plain = onnx.helper.get_attribute_value(default)
    return bool((plain.decode() if isinstance(plain, bytes) else plain) == value)


@lru_cache(maxsize=512)
def _schema(op: str, opset: int, domain: str) -> onnx.defs.OpSchema | None:
    """The operator's schema; None for one that ONNX does not know."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None
