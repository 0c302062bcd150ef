"""What generated graphs cover, counted from the graphs themselves: no model is read again for it."""

from __future__ import annotations

from fuzzing.coverage import OperatorSet, Tally
from fuzzing.coverage import operators as sets
from fuzzing.coverage.models import NOTHING, UNKNOWN, Node, Scope, TensorType
from fuzzing.generate.isra.settings import Settings
from fuzzing.generate.isra.solver import Generated
from fuzzing.graph import operators, types
from fuzzing.graph.ir import Attribute, Body, Constant, Graph
from fuzzing.graph.onnx_types import DTYPES


def operator_set(settings: Settings) -> OperatorSet:
    """What to measure against: Isra's own set where just that is asked for, else the operators asked for."""
    used = set(settings.operators or operators.at(settings.opset))
    isra = sets.get("isra")
    if used == isra.in_degrees.keys() & operators.at(settings.opset):
        return isra
    known = sets.get("onnx").in_degrees
    return OperatorSet("as asked for", {name: known[name] for name in sorted(used & known.keys())})


def measure(generated: Generated, tally: Tally) -> None:
    """Adds a graph to a tally, as the model that is written of it would be added."""
    tally.add(scopes(generated.graph))


def scopes(graph: Graph) -> list[Scope]:
    """The graph as coverage sees it, then the bodies that its nodes hold."""
    return list(_scopes(graph, [f"v{edge}" for edge in range(len(graph.types))]))


def _scopes(graph: Graph, names: list[str]) -> list[Scope]:
    known = [_known(type_) for type_ in graph.types]
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
                tuple([_told(name, value) for name, value in sorted(node.attributes.items())]),
                tuple([known[edge] for edge in inputs]),
            )
        )
        for body in node.bodies():
            inner += _scopes(body.graph, _inner_names(body, names, f"{names[node.outputs[0]]}/"))
    return [scope, *inner]


def _inner_names(body: Body, names: list[str], prefix: str) -> list[str]:
    found = [f"{prefix}{edge}" for edge in range(len(body.graph.types))]
    for edge, outer in zip(body.graph.captured, body.captures, strict=True):
        found[edge] = names[outer]
    return found


def _known(type_: types.TensorType) -> TensorType:
    if type_.shape is None:
        return NOTHING
    return TensorType(DTYPES[type_.dtype], tuple([UNKNOWN if dim is None else dim for dim in type_.shape]))


def _told(name: str, value: Attribute) -> bytes:
    """An attribute as bytes that differ where it does; of a graph only its name, as coverage has it."""
    if isinstance(value, Body):
        return name.encode()
    told = value.key() if isinstance(value, Constant) else value
    return f"{name}={told!r}".encode()
