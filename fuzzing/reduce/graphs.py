"""Operator graphs made small: the failing part, then fewer operators, attributes, dimensions, values."""

from __future__ import annotations

from fuzzing.reduce.engine import Format, Pass
from fuzzing.reduce.graph_cuts import by_nodes, by_outputs, bypass, keep, named, single
from fuzzing.reduce.graph_plain import plain, shrink, simplify, usual
from fuzzing.reduce.lenses import Lens, register_lens
<<<<<<< HEAD

#: Values that are kept of edges inside the graph, in bytes; beyond it they are drawn anew where needed.
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class Subject:
    """A graph, and what its edges hold when it is run.

    graph   each edge has a name, by which it is known while others come and go
    values  by name: of the inputs, and of what may become one
    origin  the case it comes from, for all but program and inputs
    """

    graph: Graph
    values: Mapping[str, Input]
    origin: TestCase

    def case(self) -> TestCase:
        """The case: the model, its inputs, and no reference, which is another program's."""
        graph = replace(self.graph, names={})
        inputs = tuple([(f"v{edge}", self.value(edge)) for edge in graph.inputs])
        return replace(self.origin, program=OnnxModel(to_bytes(graph)), inputs=inputs, expected=None)

    def value(self, edge: int) -> Input:
        """What an input holds; drawn, where the value that is known is of another type."""
        type_ = self.graph.types[edge]
        given = self.values.get(self.graph.names[edge])
        if isinstance(given, (Tensor, Recipe)) and (given.dtype, given.shape) == tuple(type_):
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
    """The graph of a case, with the value of every edge that the library can tell.

    Raises UsageError for a graph whose inputs have no known shape.
    """
    assert isinstance(case.program, OnnxModel)
    graph = from_onnx(case.program.model)
    given = dict(case.inputs)
    names = {edge: f"e{edge}" for edge in range(len(graph.types))}
    values = {names[edge]: given[graph.names.get(edge, f"v{edge}")] for edge in graph.inputs}
    subject = Subject(_fitted(replace(graph, names=names), values), values, case)
    if any(not subject.graph.types[edge].static for edge in subject.graph.inputs):
        raise UsageError("a graph is reduced with inputs of known shapes, and this one leaves some open")
    return _observed(subject, bench)


def _fitted(graph: Graph, values: Mapping[str, Input]) -> Graph:
    """The graph with its inputs as long as what they are given."""
    types = list(graph.types)
    for edge in graph.inputs:
        value = values[graph.names[edge]]
        if isinstance(value, (Tensor, Recipe)):
            types[edge] = TensorType(value.dtype, value.shape)
    return replace(graph, types=tuple(types))


def _observed(subject: Subject, bench: Bench) -> Subject:
    """The subject with what the library gives for every edge; the compiler is not asked."""
    graph = subject.graph
    inner = [edge for node in graph.nodes for edge in node.outputs if graph.types[edge].shape is not None]
    told = bench.reference(replace(subject, graph=replace(graph, outputs=tuple(inner))).case())
    found = dict(told or ())
    room, values, types = _KEPT_BYTES, dict(subject.values), list(graph.types)
    for edge in inner:
        value = found.get(f"v{edge}")
        if isinstance(value, Tensor) and (room := room - len(value.data)) > 0:
            values[graph.names[edge]] = value
            types[edge] = TensorType(value.dtype, value.shape)
    return replace(subject, graph=replace(graph, types=tuple(types)), values=values)


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
        given = subject.value(edge) if edge in graph.inputs else _tensor(graph.constants[edge])
        count, off, strange = complexity(given)
        ranks, lengths = ranks + type_.rank, lengths + sum(type_.lengths)
        elements, broken, odd = elements + count, broken + off, odd + strange
    inputs = len(graph.inputs)
    return (len(graph.nodes), uses, outputs, attributes, inputs, ranks, elements, lengths, broken, odd)


def _tensor(constant: Constant) -> Tensor:
    return Tensor.of(constant.array, constant.dtype)


def key(subject: Subject) -> str:
    """The content, as a name."""
    hashed = hashlib.sha256(to_bytes(replace(subject.graph, names={})))
    for edge in subject.graph.inputs:
        hashed.update(repr(subject.value(edge)).encode())
    return hashed.hexdigest()


# -- cutting nodes -------------------------------------------------------------------------------------


def keep(subject: Subject, nodes: Iterable[int]) -> Subject | None:
    """The part of the graph that these nodes are; None if there is no such part.

    Its outputs are those that were outputs, and edges that nothing in the part uses.
    """
    graph = subject.graph
    chosen = set(nodes)
    if not chosen:
        return None
    part = extract(graph, chosen)
    used = {edge for node in part.nodes for edge in node.uses()}
    before = {graph.names[edge] for edge in graph.outputs}
    outputs = [edge for edge in part.outputs if edge not in used or part.names[edge] in before]
    return _part(subject, prune(part, outputs))


def _part(subject: Subject, part: Graph) -> Subject | None:
    """The subject with a part of its graph; None if an input would be of no known shape."""
    if not part.nodes or any(not part.types[edge].static for edge in part.inputs):
        return None
    return replace(subject, graph=part)


def _by_outputs(attempt: Attempt[Subject]) -> None:
    """Fewer outputs, and the cone of what is left."""

    def without(subject: Subject, gone: Sequence[int]) -> Subject | None:
        left = [edge for edge in subject.graph.outputs if edge not in set(gone)]
        return _part(subject, prune(subject.graph, left)) if left else None

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
        rest = [item for place, item in enumerate(graph.nodes) if place != number]
        if any(edge in node.outputs[1:] for item in rest for edge in item.uses()):
            continue  # one input stands for the first output, none for the others
        for edge in dict.fromkeys(node.uses()):
            if graph.types[edge] == graph.types[node.outputs[0]]:
                fed = substitute(replace(graph, nodes=tuple(rest)), {node.outputs[0]: edge})
                made = {output for item in rest for output in item.outputs}
                outputs = [output for output in dict.fromkeys(fed.outputs) if output in made]
                if outputs and (candidate := _part(subject, prune(fed, outputs))) is not None:
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
    graph = prune(subject.graph, subject.graph.outputs)
    try:
        graph = replace(retype(graph), names=graph.names)
    except IllTypedError:
        return
    if all(graph.types[edge].shape is not None for edge in graph.outputs):
        yield replace(subject, graph=graph)


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
    for axis in range(max((len(shapes[edge]) for edge in graph.inputs), default=0)):
        those = [edge for edge in graph.inputs if len(shapes[edge]) > axis]
        for edges in [those, *([edge] for edge in those)] if len(those) > 1 else [those]:
            yield from _flattened(subject, edges, axis)


def _is_data(constant: Constant) -> bool:
    """Whether a constant is data like an input's; axes, shapes and the like are not."""
    return constant.dtype in ("float16", "float32", "float64")


def _groups(places: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Lengths to change together: all that are alike, all but one, then each."""
    all_but_one = [[other for other in places if other != place] for place in places]
    groups = [places, *all_but_one, *([place] for place in places)]
    return [group for n, group in enumerate(groups) if group and group not in groups[:n]]


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


def _simplify(attempt: Attempt[Subject]) -> None:
    """Numbers that people can read, where the bug does not need others."""
    while attempt.any(_simplified(attempt.best)):
        pass


def _simplified(subject: Subject) -> Iterator[Subject]:
    for edge in subject.graph.inputs:
        for candidate in simpler(subject.value(edge)):
            yield replace(subject, values={**subject.values, subject.graph.names[edge]: candidate})
    for edge, constant in subject.graph.constants.items():
        if _is_data(constant):
            for candidate in simpler(_tensor(constant)):
                array = tensor_of(candidate)
                if array is not None:
                    changed = {**subject.graph.constants, edge: Constant(constant.dtype, array.array())}
                    yield replace(subject, graph=replace(subject.graph, constants=changed))

=======
from fuzzing.reduce.subject import Subject, key, load, size
>>>>>>> e-programs

FORMAT = Format[Subject](
    size=size,
    key=key,
    passes=(
        Pass("named", named),
        Pass("single", single),
        Pass("outputs", by_outputs),
        Pass("nodes", by_nodes),
        Pass("bypass", bypass),
        Pass("plain", plain),
        Pass("usual", usual),
        Pass("shrink", shrink),
        Pass("simplify", simplify),
    ),
)

_WORDS = ("operators", "edges used", "outputs", "attributes")
register_lens(Lens("OnnxModel", load=load, case=Subject.case, format=FORMAT, words=_WORDS))

__all__ = ["FORMAT", "Subject", "keep", "load"]
