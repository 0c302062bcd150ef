"""Simplifies operators: default attributes, common types, shorter inputs, simple values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from fuzzing.cases import Tensor
from fuzzing.errors import UnwritableError
from fuzzing.graph import Constant, Graph, Node, TensorType
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.opset_conversion import convert_opset
from fuzzing.graph.recurrent_directions import is_bidirectional, single_directions
from fuzzing.graph.type_replacement import INTEGERS_TO_FLOAT, number_edges, replace_types
from fuzzing.reduce.case_inputs import propose_shortenings
from fuzzing.reduce.engine import Attempt
from fuzzing.reduce.graph_state import OPSETS, GraphState, constant_to_tensor
from fuzzing.reduce.graph_typing import infer_types
from fuzzing.reduce.input_values import (
    as_tensor,
    cast_input,
    drop_axis,
    plainer_replacements,
    shorten_axis,
    simplify_input,
)
from fuzzing.triage.proven_needs import operand_inputs, positive_values

#: One element would hide bugs that drop an axis; `shrink_inputs_together` tries it afterwards.
_FILLED = 2


def drop_optional(attempt: Attempt[GraphState]) -> None:
    """Removes attributes, optional inputs and outputs, for their defaults, and signs of negative numbers."""
    while attempt.any(_drop_candidates(attempt.best)):
        pass


def _drop_candidates(state: GraphState) -> Iterator[GraphState]:
    graph = state.graph
    for number, node in enumerate(graph.nodes):
        for variant in _variants(node, graph):
            yield from _replace_node(state, number, variant)


def _variants(node: Node, graph: Graph) -> Iterator[Node]:
    """The node without each optional attribute and input, and with positive numbers for negative ones."""
    version = graph.opset if not node.domain else graph.opsets.get(node.domain, 1)
    try:
        schema = onnx.defs.get_schema(node.op, version, node.domain)
    except onnx.defs.SchemaError:
        return
    for name in node.attributes:
        if name in schema.attributes and not schema.attributes[name].required:
            left = {other: value for other, value in node.attributes.items() if other != name}
            yield node._replace(attributes=left)
            rank = next((graph.types[edge].rank for edge in node.inputs if edge is not None), None)
            for positive in positive_values(node.attributes[name], rank):
                yield node._replace(attributes={**left, name: positive})
    for place in reversed(range(schema.min_input, len(node.inputs))):
        if node.inputs[place] is not None:
            inputs = list(node.inputs)
            inputs[place] = None
            while inputs and inputs[-1] is None:
                inputs.pop()
            yield node._replace(inputs=tuple(inputs))


def name_cast_types(attempt: Attempt[GraphState]) -> None:
    """A Cast for a CastLike: ONNX defines the one by the other, so a failure that does not need the CastLike
    shows the Cast's bug, and has its signature.
    """
    while attempt.any(_cast_candidates(attempt.best)):
        pass


def _cast_candidates(state: GraphState) -> Iterator[GraphState]:
    for number, node in enumerate(state.graph.nodes):
        if node.op == "CastLike" and not node.domain and node.inputs[1] is not None:
            code = DTYPES.get(state.graph.types[node.inputs[1]].dtype)
            if code is not None:
                cast = node._replace(
                    op="Cast", inputs=node.inputs[:1], attributes={**node.attributes, "to": code}
                )
                yield from _replace_node(state, number, cast)


def take_one_direction(attempt: Attempt[GraphState]) -> None:
    """Forward, or else reverse, for bidirectional: what either does wrong by itself is the bug of one
    direction.
    """
    while attempt.any(_direction_candidates(attempt.best)):
        pass


def _direction_candidates(state: GraphState) -> Iterator[GraphState]:
    for number, node in enumerate(state.graph.nodes):
        for single in single_directions(state.graph, number) if is_bidirectional(node) else ():
            values = dict(state.values)
            for edge, (axis, place) in single.taken.items():
                if (tensor := as_tensor(state.value(edge))) is not None:
                    entry = np.ascontiguousarray(tensor.array().take([place], axis))
                    values[state.graph.names[edge]] = Tensor.of(entry, tensor.dtype)
            yield from infer_types(replace(state, graph=single.graph, values=values))


def _replace_node(state: GraphState, number: int, node: Node) -> Iterator[GraphState]:
    """The state with one node changed, if its types can be inferred."""
    graph = state.graph
    nodes = (*graph.nodes[:number], node, *graph.nodes[number + 1 :])
    yield from infer_types(replace(state, graph=replace(graph, nodes=nodes)))


def shrink_inputs_together(attempt: Attempt[GraphState]) -> None:
    """Shorter inputs; equal lengths together first, as they often have to agree."""
    while attempt.any(_shrink_candidates(attempt.best)):
        pass


def _shrink_candidates(state: GraphState) -> Iterator[GraphState]:
    graph = state.graph
    shapes = {edge: graph.types[edge].lengths for edge in graph.inputs}
    shapes |= {edge: item.array.shape for edge, item in graph.constants.items() if _is_data(item)}
    for group, new in propose_shortenings(shapes):
        yield from _shorten_axes(state, group, new)
    for axis in range(max((len(shapes[edge]) for edge in graph.inputs), default=0)):
        those = [edge for edge in graph.inputs if len(shapes[edge]) > axis]
        for edges in [those, *([edge] for edge in those)] if len(those) > 1 else [those]:
            yield from _drop_axes(state, edges, axis)


def fill_empty_inputs(attempt: Attempt[GraphState]) -> None:
    """Two elements along axes without any, in all inputs or one: a failure that does not need emptiness shows
    the same bug as those of other tensors, and has its signature.
    """
    attempt.any(_fill_candidates(attempt.best))


def _fill_candidates(state: GraphState) -> Iterator[GraphState]:
    types = state.graph.types
    empty = [edge for edge in state.graph.inputs if 0 in types[edge].lengths]
    for edges in [empty, *([edge] for edge in empty)] if len(empty) > 1 else [empty][: len(empty)]:
        changed = list(types)
        for edge in edges:
            changed[edge] = TensorType(types[edge].dtype, tuple([n or _FILLED for n in types[edge].lengths]))
        yield from infer_types(replace(state, graph=replace(state.graph, types=tuple(changed))))


def separate_operands(attempt: Attempt[GraphState]) -> None:
    """A tensor of its own for each operand, with the same value, where a node is given an input twice: a
    failure that does not need that shows the same bug as those of distinct tensors, and has its signature.
    """
    while attempt.any(_separation_candidates(attempt.best)):
        pass


def _separation_candidates(state: GraphState) -> Iterator[GraphState]:
    for number in range(len(state.graph.nodes)):
        yield from _separated(state, number)


def _separated(state: GraphState, number: int) -> Iterator[GraphState]:
    """The state with distinct operands of one node, if they are inputs or initializers."""
    graph = state.graph
    types, names, inputs = list(graph.types), dict(graph.names), list(graph.inputs)
    values, constants, operands = dict(state.values), dict(graph.constants), list(graph.nodes[number].inputs)
    for place, edge in enumerate(operands):
        if edge is None or edge not in operands[:place] or not (edge in inputs or edge in constants):
            continue
        operands[place] = new = len(types)
        types.append(types[edge])
        names[new] = f"{names[edge]}.{number}.{place}"
        if edge in constants:
            constants[new] = constants[edge]
        if edge in graph.inputs:
            inputs.append(new)
            values[names[new]] = state.value(edge)
    if len(types) > len(graph.types):
        graph = replace(graph, types=tuple(types), names=names, inputs=tuple(inputs), constants=constants)
        separated = graph.nodes[number]._replace(inputs=tuple(operands))
        yield from _replace_node(replace(state, graph=graph, values=values), number, separated)


def fix_operands(attempt: Attempt[GraphState]) -> None:
    """Initializers for integer operands such as axes and lengths: a failure that does not need them at run
    time shows the same bug as those of constants, and has its signature.
    """
    while attempt.any(_fixed_candidates(attempt.best)):
        pass


def _fixed_candidates(state: GraphState) -> Iterator[GraphState]:
    operands = operand_inputs(state.graph)
    for edges in (
        [operands, *([edge] for edge in operands)] if len(operands) > 1 else [operands][: len(operands)]
    ):
        tensors = {edge: as_tensor(state.value(edge)) for edge in edges}
        known = {
            edge: Constant(tensor.dtype, tensor.array())
            for edge, tensor in tensors.items()
            if tensor is not None
        }
        if known.keys() == tensors.keys():
            inputs = tuple([edge for edge in state.graph.inputs if edge not in known])
            graph = replace(state.graph, inputs=inputs, constants={**state.graph.constants, **known})
            yield from infer_types(replace(state, graph=graph))


def _is_data(constant: Constant) -> bool:
    """Whether a constant is data like an input's, not axes, shapes and the like."""
    return constant.dtype in ("float16", "float32", "float64")


def _shorten_axes(state: GraphState, places: Sequence[tuple[int, int]], length: int) -> Iterator[GraphState]:
    names, types = state.graph.names, list(state.graph.types)
    values = {**state.values, **{names[edge]: state.value(edge) for edge in state.graph.inputs}}
    constants = dict(state.graph.constants)
    for edge, axis in places:
        old = types[edge].lengths
        types[edge] = TensorType(types[edge].dtype, (*old[:axis], length, *old[axis + 1 :]))
        if edge in constants:
            constants[edge] = Constant(constants[edge].dtype, constants[edge].array.take(range(length), axis))
        elif (less := shorten_axis(values[names[edge]], axis, length)) is not None:
            values[names[edge]] = less
    graph = replace(state.graph, types=tuple(types), constants=constants)
    yield from infer_types(replace(state, graph=graph, values=values))


def _drop_axes(state: GraphState, edges: Sequence[int], axis: int) -> Iterator[GraphState]:
    """The state with inputs of one dimension less."""
    values, types = dict(state.values), list(state.graph.types)
    for edge in edges:
        less = drop_axis(state.value(edge), axis)
        if less is None:
            return
        old = types[edge].lengths
        types[edge] = TensorType(types[edge].dtype, (*old[:axis], *old[axis + 1 :]))
        values[state.graph.names[edge]] = less
    yield from infer_types(replace(state, graph=replace(state.graph, types=tuple(types)), values=values))


def simplify_values(attempt: Attempt[GraphState]) -> None:
    """Simplifies numbers that the bug does not depend on."""
    while attempt.any(_simplify_candidates(attempt.best)):
        pass


def _simplify_candidates(state: GraphState) -> Iterator[GraphState]:
    for edge in state.graph.inputs:
        for candidate in simplify_input(state.value(edge)):
            changed = {**state.values, state.graph.names[edge]: candidate}
            yield from infer_types(replace(state, values=changed))
    for edge, constant in state.graph.constants.items():
        if _is_data(constant):
            for candidate in simplify_input(constant_to_tensor(constant)):
                array = as_tensor(candidate)
                if array is not None:
                    constants = {**state.graph.constants, edge: Constant(constant.dtype, array.array())}
                    yield from infer_types(replace(state, graph=replace(state.graph, constants=constants)))


def use_common_types(attempt: Attempt[GraphState]) -> None:
    """The types and the version of most models: float32, int64, and an opset of `OPSETS`; float32 for
    integers; where that does not show the failure, the plainest type of a kind in place of one type
    (`fuzzing.cases.plain_types`).
    """
    while attempt.any(_common_type_candidates(attempt.best)):
        pass


def _common_type_candidates(state: GraphState) -> Iterator[GraphState]:
    dtypes = [type_.dtype for type_ in state.graph.types]
    for replacements in plainer_replacements(dtypes, of_graphs=True):
        yield from infer_types(_cast_all(state, replacements))
    for edges in number_edges(state.graph):
        yield from infer_types(_cast_all(state, INTEGERS_TO_FLOAT, edges))
    for opset in OPSETS:
        try:
            yield replace(state, graph=convert_opset(state.graph, opset))
        except UnwritableError:
            continue


def _cast_all(
    state: GraphState, replacements: Mapping[str, str], edges: Collection[int] | None = None
) -> GraphState:
    """The state with element types replaced, in casts too; of these inputs and initializers, if given."""
    graph, values = state.graph, dict(state.values)
    for edge in graph.inputs:
        new = replacements.get(graph.types[edge].dtype)
        if new is not None and (edges is None or edge in edges):
            values[graph.names[edge]] = cast_input(state.value(edge), new)
    return replace(state, graph=replace_types(graph, replacements, edges), values=values)
