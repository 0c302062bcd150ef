"""The types of a changed graph's edges, where they depend on the values of its inputs too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fuzzing.errors import IllTypedError
from fuzzing.graph import Constant
from fuzzing.graph.transformations import prune, retype
from fuzzing.reduce.graph_state import GraphState
from fuzzing.reduce.input_values import as_tensor

#: Elements of an input that may hold axes, lengths, scales and the like.
_MAX_ELEMENTS = 32
_DTYPES = ("int32", "int64", "float32")


def infer_types(state: GraphState) -> Iterator[GraphState]:
    """The state with its types inferred again; none if they cannot be.

    A shape that depends on an input's elements, such as Unsqueeze's on `axes`, is that of the elements given.
    """
    pruned = replace(state, graph=prune(state.graph, state.graph.outputs))
    graph = pruned.graph
    try:
        typed = retype(graph)  # which accepts fewer shapes of inputs than of constants
        if known := _known_inputs(pruned):
            inputs = tuple(edge for edge in graph.inputs if edge not in known)
            typed = retype(replace(graph, inputs=inputs, constants={**graph.constants, **known}))
    except IllTypedError:
        return
    if all(typed.types[edge].shape is not None for edge in graph.outputs):
        yield replace(state, graph=replace(graph, types=typed.types, nodes=typed.nodes))


def _known_inputs(state: GraphState) -> dict[int, Constant]:
    """The small inputs, as constants."""
    found = {edge: _constant(state, edge) for edge in state.graph.inputs}
    return {edge: constant for edge, constant in found.items() if constant is not None}


def _constant(state: GraphState, edge: int) -> Constant | None:
    type_ = state.graph.types[edge]
    if type_.dtype not in _DTYPES or not type_.static or type_.elements > _MAX_ELEMENTS:
        return None
    value = as_tensor(state.value(edge))
    return None if value is None else Constant(type_.dtype, value.array())
