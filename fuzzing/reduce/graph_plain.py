"""Plainer operators: defaults for attributes, common types, shorter inputs, readable values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import onnx

from fuzzing.errors import IllTypedError, UnwritableError
from fuzzing.graph import Constant, Graph, Node, TensorType
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.opsets import at_opset
from fuzzing.graph.rewrite import prune, retype
from fuzzing.reduce.engine import Attempt
from fuzzing.reduce.inputs import COMMON, cast, flatter, shorter, simpler, tensor_of
from fuzzing.reduce.lengths import shortenings
from fuzzing.reduce.subject import OPSETS, Subject, tensor_of_constant


def plain(attempt: Attempt[Subject]) -> None:
    """Attributes, optional inputs and outputs left out, so that defaults hold."""
    while attempt.any(_plainer(attempt.best)):
        pass


def _plainer(subject: Subject) -> Iterator[Subject]:
    graph = subject.graph
    for number, node in enumerate(graph.nodes):
        for variant in _variants(node, graph):
            yield from _retyped(subject, number, variant)


def _variants(node: Node, graph: Graph) -> Iterator[Node]:
    """The node without each attribute and each input that ONNX lets be left out."""
    version = graph.opset if not node.domain else graph.opsets.get(node.domain, 1)
    try:
        schema = onnx.defs.get_schema(node.op, version, node.domain)
    except onnx.defs.SchemaError:
        return
    for name in node.attributes:
        if name in schema.attributes and not schema.attributes[name].required:
            left = {other: value for other, value in node.attributes.items() if other != name}
            yield node._replace(attributes=left)
    for place in reversed(range(schema.min_input, len(node.inputs))):
        if node.inputs[place] is not None:
            inputs = list(node.inputs)
            inputs[place] = None
            while inputs and inputs[-1] is None:
                inputs.pop()
            yield node._replace(inputs=tuple(inputs))


def _retyped(subject: Subject, number: int, node: Node) -> Iterator[Subject]:
    """The subject with one node changed, if ONNX can tell the types anew."""
    graph = subject.graph
    nodes = (*graph.nodes[:number], node, *graph.nodes[number + 1 :])
    yield from _inferred(replace(subject, graph=replace(graph, nodes=nodes)))


def _inferred(subject: Subject) -> Iterator[Subject]:
    """The subject with its types inferred again; none where they cannot be."""
    graph = prune(subject.graph, subject.graph.outputs)
    try:
        graph = replace(retype(graph), names=graph.names)
    except IllTypedError:
        return
    if all(graph.types[edge].shape is not None for edge in graph.outputs):
        yield replace(subject, graph=graph)


def shrink(attempt: Attempt[Subject]) -> None:
    """Shorter inputs; lengths that are alike together first, since they often have to agree."""
    while attempt.any(_shrunk(attempt.best)):
        pass


def _shrunk(subject: Subject) -> Iterator[Subject]:
    graph = subject.graph
    shapes = {edge: graph.types[edge].lengths for edge in graph.inputs}
    shapes |= {edge: item.array.shape for edge, item in graph.constants.items() if _is_data(item)}
    for group, new in shortenings(shapes):
        yield from _cut_short(subject, group, new)
    for axis in range(max((len(shapes[edge]) for edge in graph.inputs), default=0)):
        those = [edge for edge in graph.inputs if len(shapes[edge]) > axis]
        for edges in [those, *([edge] for edge in those)] if len(those) > 1 else [those]:
            yield from _flattened(subject, edges, axis)


def _is_data(constant: Constant) -> bool:
    """Whether a constant is data like an input's; axes, shapes and the like are not."""
    return constant.dtype in ("float16", "float32", "float64")


def _cut_short(subject: Subject, places: Sequence[tuple[int, int]], length: int) -> Iterator[Subject]:
    names, types = subject.graph.names, list(subject.graph.types)
    values = {**subject.values, **{names[edge]: subject.value(edge) for edge in subject.graph.inputs}}
    constants = dict(subject.graph.constants)
    for edge, axis in places:
        old = types[edge].lengths
        types[edge] = TensorType(types[edge].dtype, (*old[:axis], length, *old[axis + 1 :]))
        if edge in constants:
            constants[edge] = Constant(constants[edge].dtype, constants[edge].array.take(range(length), axis))
        elif (less := shorter(values[names[edge]], axis, length)) is not None:
            values[names[edge]] = less
    graph = replace(subject.graph, types=tuple(types), constants=constants)
    yield from _inferred(replace(subject, graph=graph, values=values))


def _flattened(subject: Subject, edges: Sequence[int], axis: int) -> Iterator[Subject]:
    """The subject with inputs of one dimension less."""
    values, types = dict(subject.values), list(subject.graph.types)
    for edge in edges:
        less = flatter(subject.value(edge), axis)
        if less is None:
            return
        old = types[edge].lengths
        types[edge] = TensorType(types[edge].dtype, (*old[:axis], *old[axis + 1 :]))
        values[subject.graph.names[edge]] = less
    yield from _inferred(replace(subject, graph=replace(subject.graph, types=tuple(types)), values=values))


def simplify(attempt: Attempt[Subject]) -> None:
    """Numbers that people can read, where the bug does not need others."""
    while attempt.any(_simplified(attempt.best)):
        pass


def _simplified(subject: Subject) -> Iterator[Subject]:
    for edge in subject.graph.inputs:
        for candidate in simpler(subject.value(edge)):
            yield replace(subject, values={**subject.values, subject.graph.names[edge]: candidate})
    for edge, constant in subject.graph.constants.items():
        if _is_data(constant):
            for candidate in simpler(tensor_of_constant(constant)):
                array = tensor_of(candidate)
                if array is not None:
                    changed = {**subject.graph.constants, edge: Constant(constant.dtype, array.array())}
                    yield replace(subject, graph=replace(subject.graph, constants=changed))


def usual(attempt: Attempt[Subject]) -> None:
    """The types and the version that most models have: float32, int64, and an opset of `OPSETS`."""
    while attempt.any(_usual(attempt.best)):
        pass


def _usual(subject: Subject) -> Iterator[Subject]:
    for common in COMMON:
        yield from _inferred(_recast(subject, common))
    for opset in OPSETS:
        try:
            yield replace(subject, graph=at_opset(subject.graph, opset))
        except UnwritableError:
            continue


def _recast(subject: Subject, common: Mapping[str, str]) -> Subject:
    """The subject with every element type of some family made the common one, in casts too."""
    graph, values, types = subject.graph, dict(subject.values), list(subject.graph.types)
    constants = dict(graph.constants)
    for edge in (*graph.inputs, *constants):
        old = types[edge]
        new = common.get(old.dtype)
        if new is None:
            continue
        types[edge] = TensorType(new, old.shape)
        given = tensor_of_constant(constants[edge]) if edge in constants else subject.value(edge)
        changed = cast(given, new)
        if edge not in constants:
            values[graph.names[edge]] = changed
        elif (tensor := tensor_of(changed)) is not None:
            constants[edge] = Constant(new, tensor.array())
    nodes = tuple([_recast_node(node, common) for node in graph.nodes])
    graph = replace(graph, types=tuple(types), constants=constants, nodes=nodes)
    return replace(subject, graph=graph, values=values)


def _recast_node(node: Node, common: Mapping[str, str]) -> Node:
    """A node that names an element type (Cast, RandomUniform, EyeLike, …) with the common one instead."""
    codes = {DTYPES[old]: DTYPES[new] for old, new in common.items() if old in DTYPES}
    name = "to" if node.op == "Cast" else "dtype"
    code = node.attributes.get(name)
    if not isinstance(code, int) or code not in codes:
        return node
    return node._replace(attributes={**node.attributes, name: codes[code]})
