"""Coverage of generated graphs, counted from the graphs without reading models again."""

from __future__ import annotations

from fuzzing.coverage import OperatorSet, Tally
from fuzzing.coverage import operators as sets
from fuzzing.coverage.models import UNKNOWN, UNTYPED, Node, Scope, TensorType
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.graph import operators, types
from fuzzing.graph.ir import Attribute, Constant, Graph, Subgraph
from fuzzing.graph.onnx_types import DTYPES


def select_operator_set(settings: GeneratorSettings) -> OperatorSet:
    """The set to measure against: Isra's own if exactly that is requested, else the requested one."""
    used = set(settings.operators or operators.specifications(settings.opset))
    isra = sets.get("isra")
    if used == isra.in_degrees.keys() & operators.specifications(settings.opset):
        return isra
    known = sets.get("onnx").in_degrees
    return OperatorSet("as requested", {name: known[name] for name in sorted(used & known.keys())})


def add_to_tally(generated: GeneratedGraph, tally: Tally) -> None:
    """Adds a graph to a tally, equal to adding the model written from it."""
    tally.add(list(_list_scopes(generated.graph, [f"v{edge}" for edge in range(len(generated.graph.types))])))


def _list_scopes(graph: Graph, names: list[str]) -> list[Scope]:
    known = [_known_type(type_) for type_ in graph.types]
    scope: Scope = []
    inner: list[Scope] = []
    for number, node in enumerate(graph.nodes):
        inputs = [edge for edge in node.inputs if edge is not None]
        scope.append(
            Node(
                graph.names.get(node.outputs[0], f"n{number}"),  # as `onnx_writer` calls it
                f"{node.domain}::{node.op}" if node.domain else node.op,
                tuple([names[edge] for edge in inputs]),
                tuple([names[edge] for edge in node.outputs if graph.types[edge] != types.ABSENT]),
                tuple([_attribute_bytes(name, value) for name, value in sorted(node.attributes.items())]),
                tuple([known[edge] for edge in inputs]),
            )
        )
        for body in node.subgraphs():
            inner += _list_scopes(body.graph, _name_inner_edges(body, names, f"{names[node.outputs[0]]}/"))
    return [scope, *inner]


def _name_inner_edges(body: Subgraph, names: list[str], prefix: str) -> list[str]:
    found = [f"{prefix}{edge}" for edge in range(len(body.graph.types))]
    for edge, outer in zip(body.graph.captured, body.captures, strict=True):
        found[edge] = names[outer]
    return found


def _known_type(type_: types.TensorType) -> TensorType:
    if type_.shape is None:
        return UNTYPED
    return TensorType(DTYPES[type_.dtype], tuple([UNKNOWN if dim is None else dim for dim in type_.shape]))


def _attribute_bytes(name: str, value: Attribute) -> bytes:
    """Bytes that differ where the attribute does; of a graph only its name, as in coverage."""
    if isinstance(value, Subgraph):
        return name.encode()
    key = value.key() if isinstance(value, Constant) else value
    return f"{name}={key!r}".encode()
