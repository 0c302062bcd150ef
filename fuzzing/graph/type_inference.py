"""Type inference by operator specifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fuzzing.graph import operators
from fuzzing.graph.ir import Constant, Graph, Node, Subgraph
from fuzzing.graph.operator_spec import ConstantInput, NodeContext, OperatorSpec, TypedGraph
from fuzzing.graph.types import ABSENT, UNKNOWN, TensorType

#: What the shape function of a specification raises for operands that it does not allow.
INFERENCE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass
class _TypeView:
    opset: int
    types: list[TensorType]
    constants: Mapping[int, Constant]


def find_specification(graph: Graph, node: Node) -> OperatorSpec | None:
    """The specification of a node's operator, if there is one."""
    if graph.opset < operators.OLDEST:
        return None
    found = operators.specifications(graph.opset).get(node.op)
    return found if found is not None and found.domain == node.domain and found.expand is None else None


def complete_types(graph: Graph) -> Graph:
    """The graph with open lengths filled in where a specification determines them."""
    view = _TypeView(graph.opset, list(graph.types), graph.constants)
    nodes = []
    changed = False
    for node in graph.nodes:
        made = _complete_subgraphs(node, view.types)
        changed = changed or made is not node
        nodes.append(made)
        if all(view.types[edge].static or view.types[edge] == ABSENT for edge in node.outputs):
            continue
        for edge, type_ in zip(node.outputs, _determined_types(graph, view, made), strict=False):
            view.types[edge] = _merge_types(view.types[edge], type_)
    if not changed and view.types == list(graph.types):
        return graph
    return replace(graph, types=tuple(view.types), nodes=tuple(nodes))


def _determined_types(graph: Graph, view: TypedGraph, node: Node) -> tuple[TensorType, ...]:
    """The types of a node's outputs; none if its operands are not legal, such as a Slice by steps of 0."""
    try:
        return infer_output_types(graph, view, node) or ()
    except INFERENCE_ERRORS:
        return ()


def _complete_subgraphs(node: Node, types: Sequence[TensorType]) -> Node:
    made = {}
    for name, body in node.attributes.items():
        if isinstance(body, Subgraph):
            graph = _complete_subgraph(node, body, types)
            if graph.types != body.graph.types:
                made[name] = Subgraph(graph, body.captures)
    return node._replace(attributes={**node.attributes, **made}) if made else node


def _complete_subgraph(node: Node, body: Subgraph, types: Sequence[TensorType]) -> Graph:
    """A body that is fed edges of these types.

    ONNX assumes no lengths of what Loop carries; those still equal after one iteration hold for every one.
    """
    fed = list(body.graph.types)
    for edge, source in zip(body.graph.captured, body.captures, strict=True):
        fed[edge] = types[source]
    graph = replace(body.graph, types=tuple(fed))
    if node.op != "Loop" or node.domain:
        return complete_types(graph)
    carried = zip(graph.inputs[2:], node.inputs[2:], graph.outputs[1:], strict=False)
    kept = [(inner, types[outer], after) for inner, outer, after in carried if outer is not None]
    for inner, before, _ in kept:
        if graph.types[inner].shape is None:
            fed[inner] = before
    supposed = complete_types(replace(graph, types=tuple(fed)))
    if all(supposed.types[after] == supposed.types[inner] for inner, _, after in kept):
        return supposed
    return complete_types(graph)


def infer_output_types(graph: Graph, view: TypedGraph, node: Node) -> tuple[TensorType, ...] | None:
    """The types of a node's outputs by its specification; None if it has none that applies.

    view  where the inputs' types are looked up: a graph, or one under type inference

    Specifications need static types, and constant axes and shapes.
    """
    operator = find_specification(graph, node)
    if operator is None:
        return None
    for position, edge in enumerate(node.inputs, operator.captured):
        if edge is None:
            continue
        type_ = view.types[edge]
        if type_.shape is None or not (type_.static or operator.dynamic):
            return None
        if isinstance(operator.input_spec(position), ConstantInput) and edge not in graph.constants:
            return None
    found = operator.infer(NodeContext.from_node(operator, view, node))
    return found if len(found) >= len(node.outputs) else None


def infer_types(graph: Graph) -> Graph | None:
    """The graph with all types inferred by specifications; None if they do not cover all of it."""
    view = _TypeView(graph.opset, list(graph.types), graph.constants)
    for node in graph.nodes:
        found = None if any(True for _ in node.subgraphs()) else infer_output_types(graph, view, node)
        if found is None:
            return None
        for edge, type_ in zip(node.outputs, found, strict=False):
            view.types[edge] = ABSENT if graph.types[edge] == ABSENT else type_
    return replace(graph, types=tuple(view.types))


def _merge_types(known: TensorType, other: TensorType) -> TensorType:
    if known == UNKNOWN or (known.shape is None and known.dtype == other.dtype):
        return other
    if known.shape is None or known.rank != other.rank or known.dtype != other.dtype:
        return known
    pairs = zip(known.shape, other.shape or (), strict=True)
    return TensorType(known.dtype, tuple([two if one is None else one for one, two in pairs]))
