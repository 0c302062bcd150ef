"""Injects faults: onnxruntime behind a rewriter that corrupts matching nodes of a model.

A file with faults is a backend: it subclasses `Rewriter` and lists its faults. Its worker imports only the
package `fuzzing`, so the file puts the repository's root on the path before importing this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import onnx

from fuzzing.backends.base import Backend, Named, UnsupportedPattern, get
from fuzzing.cases.programs import OnnxModel, Program

Node = Any  # onnx.NodeProto
Shape = tuple[int, ...]


class ModelContext(NamedTuple):
    """A model with its producers and inferred shapes."""

    makers: dict[str, Node]
    shapes: dict[str, Shape]

    def maker(self, node: Node, place: int = 0) -> str:
        """The operator that computes an input of a node; "" for an input of the model."""
        found = self.makers.get(node.input[place]) if place < len(node.input) else None
        return found.op_type if found is not None else ""

    def shape(self, node: Node, place: int = 0) -> Shape:
        """The shape of an input of a node; () if unknown."""
        return self.shapes.get(node.input[place], ())


Match = Callable[[Node, ModelContext], bool]


class Rewriter(Backend):
    """Base of backends with faults; `rewrite` is theirs."""

    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("NotImplemented", "", "onnxruntime lacks a kernel"),
    )

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        """Applies the fault to a model in place; may raise as a converter would."""
        raise NotImplementedError

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._honest = get("onnxruntime")()
        self._honest.load(device, {})
        self._fault: str = options["fault"]

    def convert(self, program: Program, inputs: Named) -> Any:
        model, context = with_shapes(program.to_bytes())
        self.rewrite(self._fault, model, context)
        return self._honest.convert(OnnxModel(model.SerializeToString()), inputs)

    def compile(self, model: Any) -> Any:
        return self._honest.compile(model)

    def run(self, executable: Any, inputs: Named) -> Named:
        return self._honest.run(executable, inputs)


def with_shapes(model: bytes) -> tuple[Any, ModelContext]:
    """A model with ONNX's inferred shapes, and its context."""
    proto = onnx.shape_inference.infer_shapes(onnx.load_from_string(model))
    graph, shapes = proto.graph, {}
    for item in (*graph.input, *graph.value_info, *graph.output):
        shapes[item.name] = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
    for item in graph.initializer:
        shapes[item.name] = tuple(item.dims)
    return proto, ModelContext({name: node for node in graph.node for name in node.output}, shapes)


def matching(match: Match, model: Any, context: ModelContext) -> list[Node]:
    """The nodes of a model that match."""
    return [node for node in model.graph.node if match(node, context)]


# --- what may match -----------------------------------------------------------------------------------------


def is_a(op: str) -> Match:
    return lambda node, context: node.op_type == op


def after(op: str, *before: str) -> Match:
    """An operator after one of some others."""
    return lambda node, context: (
        node.op_type == op and any(context.maker(node, place) in before for place in range(len(node.input)))
    )


def having(op: str, attribute: str, test: Callable[[Any], object] = lambda value: True) -> Match:
    """An operator whose attribute passes a test."""

    def match(node: Node, context: ModelContext) -> bool:
        given = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        return node.op_type == op and attribute in given and bool(test(given[attribute]))

    return match


def of_rank(op: str, rank: int) -> Match:
    return lambda node, context: node.op_type == op and len(context.shape(node)) == rank


def twice(op: str) -> Match:
    """An operator with the same tensor twice as input."""
    return lambda node, context: node.op_type == op and len(node.input) > 1 and node.input[0] == node.input[1]


def wide(op: str, axis: int, least: int) -> Match:
    """An operator whose input is at least `least` long in one dimension."""

    def match(node: Node, context: ModelContext) -> bool:
        shape = context.shape(node)
        return node.op_type == op and len(shape) > axis and shape[axis] >= least

    return match


def broadcast(op: str) -> Match:
    """An operator whose two operands differ in shape."""
    return lambda node, context: node.op_type == op and context.shape(node, 0) != context.shape(node, 1)


# --- what may be done to a node -----------------------------------------------------------------------------


def negate(graph: Any, node: Node) -> None:
    """Negates its first output, and so affects later nodes as a real bug does."""
    _behind(graph, node, "Neg")


def corrupt(graph: Any, node: Node) -> None:
    """Makes its output NaN: the logarithm of a negative number."""
    _behind(graph, node, "Sigmoid", "Neg", "Log")


def _behind(graph: Any, node: Node, *chain: str) -> None:
    """Appends unary operators to the first output of a node."""
    name = node.output[0]
    node.output[0] = f"{name}_right"
    links = [f"{name}_right", *(f"{name}_{number}" for number in range(len(chain) - 1)), name]
    made = [onnx.helper.make_node(op, [links[at]], [links[at + 1]]) for at, op in enumerate(chain)]
    insert_behind(graph, node, made)


def insert_behind(graph: Any, node: Node, made: list[Node]) -> None:
    """Inserts nodes after another one, in order."""
    place = list(graph.node).index(node) + 1
    for number, item in enumerate(made):
        graph.node.insert(place + number, item)
