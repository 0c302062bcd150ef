"""Operator graphs made small: first the failing part, then fewer operators, attributes, dimensions, values.

A part is cut out with what flows into it: every edge's value is computed once, by the library, and where the
nodes before an edge are cut away it becomes an input that holds the value. Nothing is added to look inside:
an edge becomes an output only where all that used it is gone, since further outputs change what compilers do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.cases.case import Input
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.errors import UsageError
from fuzzing.execute.bench import Bench
from fuzzing.graph import Constant, Graph, Node, TensorType
from fuzzing.graph.onnx_reader import from_onnx, read
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.types import ABSENT
from fuzzing.reduce.engine import Attempt, Format, Pass, cut
from fuzzing.reduce.inputs import complexity, lengths_below, shorter, simpler, tensor_of
from fuzzing.reduce.lenses import Lens, register_lens

#: Values that are kept of edges inside the graph, in bytes; beyond it they are drawn anew where needed.
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class Subject:
    """A graph, what its inputs hold, and what its other edges hold when it is run.

    origin  the case it comes from, for all but program and inputs
    """

    graph: Graph
    values: Mapping[int, Input]
    origin: TestCase

    def case(self) -> TestCase:
        """The case: the model, its inputs, and no reference, which is another program's."""
        names = [f"v{edge}" for edge in self.graph.inputs]
        inputs = tuple((name, self._value(edge)) for name, edge in zip(names, self.graph.inputs, strict=True))
        program = OnnxModel(to_bytes(replace(self.graph, names={})))
        return replace(self.origin, program=program, inputs=inputs, expected=None)

    def _value(self, edge: int) -> Input:
        type_ = self.graph.types[edge]
        given = self.values.get(edge)
        if given is not None and (given.dtype, given.shape) == tuple(type_):  # type: ignore[union-attr]
            return given
        return _drawn(type_)


def _drawn(type_: TensorType) -> Input:
    """A value for an edge of which nothing is known."""
    floats = type_.dtype in ("float16", "float32", "float64")
    if type_.dtype in RAW_DTYPES:
        return Tensor.of(np.zeros(type_.lengths, _carrier(type_.dtype)), type_.dtype)
    return Recipe("uniform" if floats else "integers", type_.dtype, type_.lengths, 0.0, 1.0, 0)


def _carrier(dtype: str) -> str:
    return "uint16" if dtype == "bfloat16" else "uint8"


def load(case: TestCase, bench: Bench) -> Subject:
    """The graph of a case, with the value of every edge that the library can tell."""
    assert isinstance(case.program, OnnxModel)
    graph = from_onnx(case.program.model)
    given = dict(case.inputs)
    values = {edge: given[graph.names.get(edge, f"v{edge}")] for edge in graph.inputs}
    bare = Subject(replace(graph, names={}), values, case)
    if any(not type_.static for type_ in _inputs(graph)):
        raise UsageError("a graph is reduced with inputs of known shapes; this one leaves some open")
    inner = [edge for node in graph.nodes for edge in node.outputs if graph.types[edge].shape is not None]
    told = bench.reference(replace(bare, graph=replace(bare.graph, outputs=tuple(inner))).case())
    found = dict(told or ())
    room, kept = _KEPT_BYTES, dict(values)
    types = list(graph.types)
    for edge in inner:
        value = found.get(f"v{edge}")
        if isinstance(value, Tensor) and (room := room - len(value.data)) > 0:
            kept[edge] = value
            types[edge] = TensorType(value.dtype, value.shape)
    return replace(bare, graph=replace(bare.graph, types=tuple(types)), values=kept)


def _inputs(graph: Graph) -> list[TensorType]:
    return [graph.types[edge] for edge in graph.inputs]


# -- size ----------------------------------------------------------------------------------------------


def size(subject: Subject) -> tuple[float, ...]:
    """Nodes, edges, attributes, inputs, dimensions, elements; then how plain the values are."""
    graph = subject.graph
    uses = sum(len(list(node.uses())) for node in graph.nodes)
    attributes = sum(len(node.attributes) for node in graph.nodes)
    outputs = len(graph.outputs) + sum(len(node.outputs) for node in graph.nodes)
    ranks = elements = lengths = broken = odd = 0
    for edge in (*graph.inputs, *graph.constants):
        type_ = graph.types[edge]
        given = subject.values.get(edge) if edge in graph.inputs else _tensor(graph.constants[edge])
        count, off, strange = complexity(given) if given is not None else (type_.elements, 0, 0)
        ranks, lengths = ranks + type_.rank, lengths + sum(type_.lengths)
        elements, broken, odd = elements + count, broken + off, odd + strange
    inputs = len(graph.inputs)
    return (len(graph.nodes), uses, outputs, attributes, inputs, ranks, elements, lengths, broken, odd)


def _tensor(constant: Constant) -> Tensor:
    return Tensor.of(constant.array, constant.dtype)


def key(subject: Subject) -> str:
    """The content, as a name."""
    hashed = hashlib.sha256(to_bytes(subject.graph))
    for edge in subject.graph.inputs:
        hashed.update(repr(subject.values.get(edge)).encode())
    return hashed.hexdigest()


# -- cutting nodes -------------------------------------------------------------------------------------


def keep(subject: Subject, nodes: Iterable[int], outputs: Iterable[int] = ()) -> Subject | None:
    """The part of the graph that these nodes are; None if nothing is left.

    outputs  edges that are to be outputs though nodes of the part use them; without any, those that were
             outputs already, and those that nothing in the part uses
    """
    graph = subject.graph
    kept = [graph.nodes[number] for number in sorted(set(nodes))]
    made = {edge for node in kept for edge in node.outputs if graph.types[edge] != ABSENT}
    used = {edge for node in kept for edge in node.uses()}
    asked = set(outputs)
    given = [
        edge
        for edge in range(len(graph.types))
        if edge in made and (edge in asked or (not asked and (edge in graph.outputs or edge not in used)))
    ]
    needed = sorted(used - made)
    if not kept or not given or any(not _feedable(graph, edge) for edge in needed):
        return None
    order = [*(edge for edge in needed if edge not in graph.constants)]
    constants = [edge for edge in needed if edge in graph.constants]
    numbers = {edge: number for number, edge in enumerate([*order, *constants])}
    for node in kept:
        for edge in node.outputs:
            numbers[edge] = len(numbers)
    part = Graph(
        opset=graph.opset,
        types=tuple([graph.types[edge] for edge in sorted(numbers, key=lambda edge: numbers[edge])]),
        inputs=tuple([numbers[edge] for edge in order]),
        constants={numbers[edge]: graph.constants[edge] for edge in constants},
        nodes=tuple([node.renumbered(numbers) for node in kept]),
        outputs=tuple([numbers[edge] for edge in given]),
        opsets=graph.opsets,
    )
    values = {numbers[edge]: value for edge, value in subject.values.items() if edge in numbers}
    return replace(subject, graph=part, values=values)


def _feedable(graph: Graph, edge: int) -> bool:
    """Whether an edge can be a constant of the part, or an input of known type."""
    return edge in graph.constants or graph.types[edge].static


def _cone(graph: Graph, outputs: Iterable[int]) -> set[int]:
    """The nodes that some edges need."""
    wanted, found = set(outputs), set()
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        if wanted.intersection(node.outputs):
            found.add(number)
            wanted.update(node.uses())
    return found


def _by_outputs(attempt: Attempt[Subject]) -> None:
    """Fewer outputs, and the cone of what is left."""

    def without(subject: Subject, gone: Sequence[int]) -> Subject | None:
        left = [edge for edge in subject.graph.outputs if edge not in set(gone)]
        return keep(subject, _cone(subject.graph, left), left)

    cut(attempt, lambda subject: subject.graph.outputs, without)


def _by_nodes(attempt: Attempt[Subject]) -> None:
    """Fewer nodes: halves of the graph, then ever smaller blocks, then each."""

    def without(subject: Subject, gone: Sequence[int]) -> Subject | None:
        left = set(range(len(subject.graph.nodes))) - set(gone)
        return keep(subject, left)

    cut(attempt, lambda subject: range(len(subject.graph.nodes)), without)


def _bypass(attempt: Attempt[Subject]) -> None:
    """A node taken out, and what used it fed with one of its inputs."""
    while attempt.any(_bypassed(attempt.best)):
        pass


def _bypassed(subject: Subject) -> Iterator[Subject]:
    graph = subject.graph
    for number, node in enumerate(graph.nodes):
        for edge in dict.fromkeys(node.uses()):
            if graph.types[edge] == graph.types[node.outputs[0]]:
                fed = {node.outputs[0]: edge}
                nodes = tuple([item.fed(fed) for item in graph.nodes])
                changed = replace(subject, graph=replace(graph, nodes=nodes))
                candidate = keep(changed, set(range(len(nodes))) - {number})
                if candidate is not None:
                    yield candidate


# -- smaller nodes -------------------------------------------------------------------------------------


def _plain(attempt: Attempt[Subject]) -> None:
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
    candidate = keep(subject, range(len(subject.graph.nodes)))
    if candidate is None:
        return
    model = to_bytes(replace(candidate.graph, types=_opened(candidate.graph)))
    try:
        read(model, strict=True)
        graph = replace(from_onnx(model), names={})
    except (UsageError, onnx.shape_inference.InferenceError):
        return
    if all(graph.types[edge].shape is not None for edge in graph.outputs):
        yield replace(candidate, graph=graph)


def _opened(graph: Graph) -> tuple[TensorType, ...]:
    """The types with the lengths of outputs left open, for inference to fill in."""
    types = list(graph.types)
    for edge in graph.outputs:
        shape = types[edge].shape
        types[edge] = TensorType(types[edge].dtype, None if shape is None else (None,) * len(shape))
    return tuple(types)


def _shrink(attempt: Attempt[Subject]) -> None:
    """Shorter inputs; lengths that are alike together first, since they often have to agree."""
    while attempt.any(_shrunk(attempt.best)):
        pass


def _shrunk(subject: Subject) -> Iterator[Subject]:
    graph = subject.graph
    shapes = {edge: graph.types[edge].lengths for edge in graph.inputs}
    shapes |= {edge: item.array.shape for edge, item in graph.constants.items() if _is_data(item)}
    for length in sorted({length for shape in shapes.values() for length in shape}, reverse=True):
        places = [(e, axis) for e, shape in shapes.items() for axis, dim in enumerate(shape) if dim == length]
        for new in lengths_below(length):
            for group in _groups(places):
                yield from _cut_short(subject, group, new)


def _is_data(constant: Constant) -> bool:
    """Whether a constant is data like an input's; axes, shapes and the like are not."""
    return constant.dtype in ("float16", "float32", "float64")


def _groups(places: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Lengths to change together: all that are alike, all but one, then each."""
    all_but_one = [[other for other in places if other != place] for place in places]
    groups = [places, *all_but_one, *([place] for place in places)]
    return [group for n, group in enumerate(groups) if group and group not in groups[:n]]


def _cut_short(subject: Subject, places: Sequence[tuple[int, int]], length: int) -> Iterator[Subject]:
    values, types = dict(subject.values), list(subject.graph.types)
    constants = dict(subject.graph.constants)
    for edge, axis in places:
        old = types[edge].lengths
        types[edge] = TensorType(types[edge].dtype, (*old[:axis], length, *old[axis + 1 :]))
        if edge in constants:
            constants[edge] = Constant(constants[edge].dtype, constants[edge].array.take(range(length), axis))
        elif edge in values and (less := shorter(values[edge], axis, length)) is not None:
            values[edge] = less
    graph = replace(subject.graph, types=tuple(types), constants=constants)
    yield from _inferred(replace(subject, graph=graph, values=values))


def _simplify(attempt: Attempt[Subject]) -> None:
    """Numbers that people can read, where the bug does not need others."""
    while attempt.any(_simplified(attempt.best)):
        pass


def _simplified(subject: Subject) -> Iterator[Subject]:
    for edge in subject.graph.inputs:
        given = subject.values.get(edge)
        for candidate in simpler(given) if given is not None else ():
            yield replace(subject, values={**subject.values, edge: candidate})
    for edge, constant in subject.graph.constants.items():
        if _is_data(constant):
            for candidate in simpler(_tensor(constant)):
                array = tensor_of(candidate)
                if array is not None:
                    changed = {**subject.graph.constants, edge: Constant(constant.dtype, array.array())}
                    yield replace(subject, graph=replace(subject.graph, constants=changed))


FORMAT = Format[Subject](
    size=size,
    key=key,
    passes=(
        Pass("outputs", _by_outputs),
        Pass("nodes", _by_nodes),
        Pass("bypass", _bypass),
        Pass("plain", _plain),
        Pass("shrink", _shrink),
        Pass("simplify", _simplify),
    ),
)

_WORDS = ("operators", "edges used", "outputs", "attributes")
register_lens(Lens("OnnxModel", load=load, case=Subject.case, format=FORMAT, words=_WORDS))
