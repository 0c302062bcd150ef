"""What mutations of models have in common: the mutant, the registry, and the check that a mutant is valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from fuzzing.cases import Tensor
from fuzzing.errors import IllTypedError, UnreadableError, UnwritableError
from fuzzing.graph.ir import Array, Constant, Graph, Node
from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.transformations import retype
from fuzzing.graph.type_inference import find_specification, infer_output_types
from fuzzing.graph.types import TensorType
from fuzzing.graph.validity import find_violations
from fuzzing.mutate.graphs.models import windows
from fuzzing.registry import Registry
from fuzzing.rng import Rng

#: The most elements of an edge of a mutant: a larger one tests memory, not a compiler.
MAX_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class ModelMutant:
    """A model with its data.

    graph   its inputs are static
    values  of its inputs, by edge
    """

    graph: Graph
    values: Mapping[int, Tensor]

    def data(self, edge: int) -> Tensor | None:
        """The value of an input or initializer; None for other edges."""
        constant = self.graph.constants.get(edge)
        if edge in self.values:
            return self.values[edge]
        return None if constant is None else Tensor.of(constant.array, constant.dtype)

    def with_data(self, changed: Mapping[int, Tensor]) -> ModelMutant:
        """The model with other values of inputs and initializers; types change with them."""
        types, constants, values = list(self.graph.types), dict(self.graph.constants), dict(self.values)
        for edge, tensor in changed.items():
            types[edge] = TensorType(tensor.dtype, tensor.shape)
            if edge in values:
                values[edge] = tensor
            if edge in constants:
                constants[edge] = Constant(tensor.dtype, tensor.array())
        graph = replace(self.graph, types=tuple(types), constants=constants)
        return replace(self, graph=graph, values=values)

    def data_edges(self) -> list[int]:
        """The edges whose data the model holds: inputs, then initializers."""
        return [*self.values, *(edge for edge in self.graph.constants if edge not in self.values)]


#: What ONNX's inference raises for models that it refuses (as in `fuzzing.coverage.models`).
_REFUSALS = (UnreadableError, UnwritableError, RuntimeError, ValueError, IndexError)

#: Changes a model at random; None where it has nothing of the kind, or the draw changes nothing.
ModelMutation: TypeAlias = Callable[[ModelMutant, Rng], ModelMutant | None]

_MUTATIONS: Registry[ModelMutation] = Registry("mutation of models", __package__)
F = TypeVar("F", bound=ModelMutation)


def register_mutation(name: str) -> Callable[[F], F]:
    """Decorator: registers a function as the mutation `name`."""

    def register(function: F) -> F:
        _MUTATIONS.add(function, name)
        return function

    return register


names = _MUTATIONS.names
get = _MUTATIONS.get


def validated(mutant: ModelMutant) -> ModelMutant | None:
    """The mutant with all types inferred anew; None if ONNX or an operator's specification refuses it."""
    graph = replace(mutant.graph, types=tuple(_declared(mutant.graph)))
    if not all(_within_specification(graph, node) for node in graph.nodes):
        return None  # before ONNX's inference, which divides by steps of 0
    try:
        typed = retype(graph)
    except (IllTypedError, *_REFUSALS):
        return None
    small = all(not type_.static or type_.elements <= MAX_ELEMENTS for type_ in typed.types)

    def value_of(edge: int) -> Array | None:
        tensor = mutant.data(edge)
        return None if tensor is None else tensor.array()

    try:
        legal = small and not find_violations(typed, value_of)
    except _REFUSALS:
        return None
    return replace(mutant, graph=typed) if legal else None


def _declared(graph: Graph) -> list[TensorType]:
    """The types of the graph with outputs' lengths left to inference."""
    made = {edge for node in graph.nodes for edge in node.outputs}
    return [
        TensorType(type_.dtype, (None,) * type_.rank) if edge in made and type_.rank >= 0 else type_
        for edge, type_ in enumerate(graph.types)
    ]


def _within_specification(graph: Graph, node: Node) -> bool:
    """Whether a node's attributes are in the domains of its operator's specification, if it has one."""
    operator = find_specification(graph, node)
    if operator is None or any(True for _ in node.subgraphs()):
        return True
    given = [graph.types[edge] for edge in node.inputs if edge is not None]
    if not given or not all(type_.static for type_ in given):
        return True
    context = NodeContext.from_node(operator, graph, node)
    try:
        for setting in operator.attribute_specs:
            if setting.name in node.attributes:
                value = node.attributes[setting.name]
                if not setting.domain.contains(value, context):
                    return False
        if not windows.keeps_rules(context):
            return False
        types = infer_output_types(graph, graph, node)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False  # the specification has no result for what it does not allow
    return types is None or all(0 not in type_.lengths for type_ in types if type_.static)
