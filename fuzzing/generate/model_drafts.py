"""Models with only correct syntax, from which DeclGen and the Randoop-like baseline draw.

Both get each operator's number of inputs, element types and attribute values, as Isra does, but not which
shapes go together nor which attribute fits which shape (seed paper: "DeclGen"). Each part of a node is
therefore taken from another valid node of the same operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from onnx import ModelProto

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.generate.output_concatenation import concatenate_outputs
from fuzzing.generate.shape_inference import ShapeInference
from fuzzing.graph import intervals
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Attribute, Builder, Constant, Graph, Subgraph
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import OperatorSpec
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng, derive_seed

#: Valid nodes of one operator and element type that parts are taken from: a node of three parts is one of
#: two million.
SAMPLES = 128

#: Says whether a model is to be kept.
Validator: TypeAlias = Callable[[ModelProto], bool]


class DraftChecker:
    """Accepts drafts by ONNX's strict inference, its checker, and an optional validator.

    The seed paper's release opens an onnxruntime session, which begins with the same inference over the same
    schemas: on 3,000 drafts the two agree in 98.6 % (`tests.benchmarks generation`). Inference needs no
    runtime under test; a validator can open a session.

    max_elements  drafts with larger edges are refused too: nobody could run them
    """

    def __init__(self, max_elements: int, validator: Validator | None = None) -> None:
        self.inference = ShapeInference()
        self._max_elements = max_elements
        self._validator = validator

    def infer_types(self, graph: Graph, sound: int = 0) -> Graph | None:
        """The graph with the types that ONNX infers; None if it is refused.

        sound  how many of the first nodes are known to pass the inference
        """
        types = self.inference.infer_types(graph, sound)
        if types is None or any(type_.static and type_.elements > self._max_elements for type_ in types):
            return None
        found = replace(graph, types=tuple(types))
        return found if self._validator is None or self._validator(to_onnx(found)) else None


@dataclass(frozen=True)
class NodeSample:
    """The parts of a valid node.

    inputs  None for an omitted one, a constant, or the element type of data
    primary the element type of the primary input; "" if it has none
    """

    inputs: tuple[Constant | str | None, ...]
    attributes: Mapping[str, Attribute]
    captured: Mapping[int, str]
    outputs: tuple[str, ...]
    primary: str


class OperatorSamples:
    """The operators under some settings, and samples of their nodes; raises UsageError if none."""

    def __init__(self, settings: GeneratorSettings) -> None:
        self.settings = settings
        self.operators = [operator for operator in Solver(settings).operators if operator.expand is None]
        self._solvers: dict[tuple[str, str], Solver] = {}
        self._samples: dict[tuple[str, str, int], NodeSample] = {}

    def sample(self, operator: OperatorSpec, dtype: str, rng: Rng) -> NodeSample:
        """A node of the operator whose primary input has this element type."""
        key = (operator.name, dtype, rng.below(SAMPLES))
        found = self._samples.get(key)
        if found is None:
            found = self._samples[key] = _extract_sample(operator, self._generate_valid(*key))
        return found

    def _generate_valid(self, name: str, dtype: str, number: int) -> Graph:
        solver = self._solvers.get((name, dtype))
        if solver is None:
            one = replace(
                self.settings,
                nodes=(1, 1),
                operators=(name,),
                dtypes=(dtype,) if dtype else self.settings.dtypes,
                picking_rate=0.0,
                concatenate_outputs=False,
            )
            solver = self._solvers[name, dtype] = Solver(one)
        return solver.generate(derive_seed(number, "sample", name, dtype)).graph


def _extract_sample(operator: OperatorSpec, graph: Graph) -> NodeSample:
    node = graph.nodes[0]
    inputs = [
        None if edge is None else graph.constants.get(edge, graph.types[edge].dtype) for edge in node.inputs
    ]
    bodies = [value for value in node.attributes.values() if isinstance(value, Subgraph)]
    primary = inputs[operator.primary] if 0 <= operator.primary < len(inputs) else None
    return NodeSample(
        inputs=tuple(inputs),
        attributes=node.attributes,
        captured={edge: graph.types[edge].dtype for body in bodies for edge in body.captures},
        outputs=tuple(graph.types[edge].dtype for edge in node.outputs),
        primary=primary if isinstance(primary, str) else "",
    )


class ModelDraft:
    """A model under construction. Outputs of nodes have an element type, if known, and no shape."""

    def __init__(self, vocabulary: OperatorSamples, rng: Rng) -> None:
        self._operator_samples = vocabulary
        self._settings = vocabulary.settings
        self._rng = rng
        self._builder = Builder(vocabulary.settings.opset)
        self._edges: list[int] = []  # all that carry data
        self._ranges: dict[int, Interval] = {}
        self._placeholder(rng.choice(self._settings.dtypes))

    def node(self) -> None:
        """Adds a node of any operator."""
        rng = self._rng
        operator = rng.choice(self._operator_samples.operators)
        primary = self._pick_primary(operator)
        dtype = "" if primary is None else self._builder.types[primary].dtype

        def sample() -> NodeSample:
            return self._operator_samples.sample(operator, dtype, rng)

        whole = sample()
        inputs = [self._input(given, sample(), place) for place, given in enumerate(whole.inputs)]
        if primary is not None and operator.primary < len(inputs):
            inputs[operator.primary] = primary
        attributes = {}
        for setting in operator.attribute_specs:
            taken = sample()
            if setting.name in taken.attributes:
                attributes[setting.name] = self._attribute(taken.attributes[setting.name], taken.captured)
        types = tuple(TensorType(dtype, None) for dtype in whole.outputs)
        self._edges += self._builder.node(operator.name, tuple(inputs), types, attributes, operator.domain)

    def _pick_primary(self, operator: OperatorSpec) -> int | None:
        if operator.primary < 0 or operator.captured > operator.primary:
            return None
        if self._rng.chance(self._settings.picking_rate):
            found = self._pick_edge(operator.dtypes)
            if found is not None:
                return found
        return self._placeholder(
            self._rng.choice([dtype for dtype in operator.dtypes if dtype in self._settings.dtypes])
        )

    def _input(self, given: Constant | str | None, other: NodeSample, place: int) -> int | None:
        if given is None:
            return None
        if isinstance(given, str):
            return self._data(given)
        taken = other.inputs[place] if place < len(other.inputs) else given
        return self._builder.constant(taken if isinstance(taken, Constant) else given)

    def _attribute(self, value: Attribute, captured: Mapping[int, str]) -> Attribute:
        if isinstance(value, Subgraph):
            return Subgraph(value.graph, tuple(self._data(captured[edge]) for edge in value.captures))
        return value

    def _data(self, dtype: str) -> int:
        if self._rng.chance(self._settings.picking_rate):
            found = self._pick_edge((dtype,))
            if found is not None:
                return found
        return self._placeholder(dtype)

    def _pick_edge(self, dtypes: tuple[str, ...]) -> int | None:
        types = self._builder.types
        fitting = [edge for edge in self._edges if types[edge].dtype in dtypes]
        return self._rng.choice(fitting) if fitting else None

    def _placeholder(self, dtype: str) -> int:
        """A new graph input of any shape, reusable: the release's baselines reuse theirs."""
        rng, limits = self._rng, self._settings.limits
        rank = rng.between(limits.min_rank, limits.max_rank)
        shape = tuple([rng.between(limits.min_dim, limits.max_dim) for _ in range(rank)])
        edge = self._builder.placeholder(TensorType(dtype, shape))
        self._ranges[edge] = intervals.draw_interval(rng, intervals.FULL_RANGES[dtype], dtype)
        self._edges.append(edge)
        return edge

    def mark(self) -> tuple[int, int]:
        """The current position, for `undo_to`."""
        return len(self._builder.types), len(self._builder.nodes)

    def undo_to(self, mark: tuple[int, int]) -> None:
        """Removes everything added since the mark."""
        edges, nodes = mark
        builder = self._builder
        del builder.types[edges:], builder.nodes[nodes:]
        builder.inputs = [edge for edge in builder.inputs if edge < edges]
        builder.constants = {edge: item for edge, item in builder.constants.items() if edge < edges}
        self._edges = [edge for edge in self._edges if edge < edges]
        self._ranges = {edge: range_ for edge, range_ in self._ranges.items() if edge < edges}

    def graph(self) -> Graph:
        """The model so far; unused edges are outputs."""
        used = {edge for node in self._builder.nodes for edge in node.used_edges()}
        made = [edge for node in self._builder.nodes for edge in node.outputs]
        return self._builder.finish(tuple([edge for edge in made if edge not in used]))

    def to_generated(self, graph: Graph) -> GeneratedGraph:
        """The accepted graph with unknown ranges for the values of its operators."""
        ranges = {edge: self._ranges[edge] for edge in graph.inputs}
        return GeneratedGraph(
            concatenate_outputs(graph) if self._settings.concatenate_outputs else graph, ranges
        )


class DraftGenerator:
    """Base of generators that draw drafts until one is accepted.

    attempts  drafts checked so far, including accepted ones
    """

    def __init__(self, settings: GeneratorSettings, validator: Validator | None = None) -> None:
        self.settings = settings
        self.attempts = 0
        self._checker = DraftChecker(settings.limits.max_elements, validator)
        self._operator_samples = OperatorSamples(settings)

    def new_draft(self, rng: Rng) -> ModelDraft:
        """A draft without nodes."""
        return ModelDraft(self._operator_samples, rng)

    def accepted(self, draft: ModelDraft, sound: int = 0) -> Graph | None:
        """The draft as a graph with types; None if it is refused. See `DraftChecker.infer_types`."""
        self.attempts += 1
        return self._checker.infer_types(draft.graph(), sound)
