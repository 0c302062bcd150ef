"""Isra's solver: graphs whose nodes all satisfy their operators' specifications, without backtracking.

Each node is instantiated in the paper's order: in-degree, first input, attributes, remaining inputs,
outputs. Every choice has a non-empty range whatever was chosen before it, so nothing is discarded; and as
edges only come from earlier nodes, a new node cannot invalidate an old one.
"""

from __future__ import annotations

from fuzzing.errors import InternalError, UsageError
from fuzzing.generate.generators import GeneratedGraph, register_generator
from fuzzing.generate.isra.edge_pool import EdgePool, PooledEdge
from fuzzing.generate.isra.primary_inputs import PrimaryInputs
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.output_concatenation import concatenate_outputs
from fuzzing.graph import intervals, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Builder, Graph
from fuzzing.graph.operator_spec import DataInput, NodeContext, OperatorSpec
from fuzzing.graph.types import Shape, TensorType
from fuzzing.rng import Rng


@register_generator("isra")
class Solver:
    """Generates graphs under one set of settings; raises UsageError if no operator is left."""

    def __init__(self, settings: GeneratorSettings) -> None:
        self.settings = settings
        known = operators.specifications(settings.opset)
        if settings.patterns:
            known = known | operators.pattern_specifications(settings.opset)
        unknown = [name for name in settings.operators if name not in known]
        if unknown:
            raise UsageError(
                f"no specification at opset {settings.opset} of: {', '.join(unknown)}; "
                "leave them out of --operators"
            )
        wanted = [known[name] for name in known if not settings.operators or name in settings.operators]
        without = dict(settings.left_out)
        primary_inputs = {one: PrimaryInputs(one, settings, without.get(one.name, ())) for one in wanted}
        self.primary_inputs = {one: found for one, found in primary_inputs.items() if found.usable}
        self.operators = list(self.primary_inputs)
        if not self.operators:
            raise UsageError(f"no operator takes {', '.join(settings.dtypes)} at opset {settings.opset}")

    def generate(self, seed: int) -> GeneratedGraph:
        """The graph of this seed."""
        return _GraphGenerator(self, Rng(seed)).generate()


class _GraphGenerator:
    def __init__(self, solver: Solver, rng: Rng) -> None:
        self._solver = solver
        self._settings = solver.settings
        self._limits = solver.settings.limits
        self._rng = rng
        self._builder = Builder(solver.settings.opset)
        self._pool = EdgePool(rng)
        self._ranges: dict[int, Interval] = {}
        self._unused: dict[int, None] = {}  # in the order of their making

    def generate(self) -> GeneratedGraph:
        rng = self._rng
        count = rng.between(*self._settings.nodes)
        dtype = rng.choice(self._settings.dtypes)
        shape = self._lengths(rng.between(max(1, self._limits.min_rank), self._limits.max_rank))
        edge, type_, range_ = self._placeholder(TensorType(dtype, shape), intervals.FULL_RANGES[dtype])
        self._pool.add(edge, type_, range_)
        for _ in range(count):
            self._node(rng.choice(self._solver.operators))
        return GeneratedGraph(self._finish(), self._ranges)

    def _node(self, operator: OperatorSpec) -> None:
        primary_inputs = self._solver.primary_inputs[operator]
        degree = self._rng.choice(primary_inputs.degrees)
        context = NodeContext(operator, self._settings.opset, self._limits, self._rng, degree)
        if operator.primary >= 0:
            self._use_edge(context, operator.primary, self._pick_primary(primary_inputs, operator))
            context.unpack_primary()
        if operator.plan is not None:
            context.plan = operator.plan(context)
        for position in range(operator.captured):
            self._input(context, position)
        for setting in operator.attribute_specs:
            if not (setting.omit and self._rng.chance(setting.omit)):
                context.attributes[setting.name] = setting.domain.draw(context)
        for position in range(operator.captured, context.degree):
            self._input(context, position)
        self._append(context)

    def _pick_primary(self, primary_inputs: PrimaryInputs, operator: OperatorSpec) -> PooledEdge:
        rng = self._rng
        if rng.chance(self._settings.picking_rate):
            found = self._pool.pick_primary(primary_inputs.kinds, primary_inputs.fits)
            if found is not None:
                return found
        type_ = TensorType(rng.choice(primary_inputs.dtypes), primary_inputs.draw_shape(rng))
        return self._placeholder(type_, operator.within(type_))

    def _input(self, context: NodeContext, position: int) -> None:
        if position == context.operator.primary:
            return
        input_spec = context.operator.input_spec(position)
        if input_spec.omit and position < context.degree - 1 and self._rng.chance(input_spec.omit):
            return
        if isinstance(input_spec, DataInput):
            self._use_edge(context, position, self._data(context, input_spec))
            return
        constant = input_spec.value(context)
        if constant is None:
            return
        context.edges[position] = self._builder.constant(constant)
        context.types[position] = constant.type
        context.constants[position] = constant

    def _data(self, context: NodeContext, input_spec: DataInput) -> PooledEdge:
        shape = input_spec.shape(context)
        dtype = (
            input_spec.dtype
            if isinstance(input_spec.dtype, str)
            else input_spec.dtype(context)
            if input_spec.dtype
            else context.dtype
        )
        allowed = (
            intervals.MODERATE_RANGES[dtype] if input_spec.within is None else input_spec.within(context)
        )
        if self._rng.chance(self._settings.picking_rate):
            found = self._pool.pick_matching(dtype, shape, allowed)
            if found is not None:
                return found
        between, limits = self._rng.between, self._limits
        lengths = [between(limits.min_dim, limits.max_dim) if dim is None else dim for dim in shape]
        return self._placeholder(TensorType(dtype, tuple(lengths)), allowed)

    def _use_edge(self, context: NodeContext, position: int, found: PooledEdge) -> None:
        edge, type_, range_ = found
        context.edges[position] = edge
        context.types[position] = type_
        context.ranges[position] = range_
        self._unused.pop(edge, None)

    def _append(self, context: NodeContext) -> None:
        operator = context.operator
        types = operator.infer(context)
        ranges = operator.intervals(context, len(types))
        if operator.expand is not None:
            outputs = operator.expand(self._builder, context)
        else:
            edges = tuple(context.edges[operator.captured :])
            while edges and edges[-1] is None:  # nothing follows it: it need not be marked as missing
                edges = edges[:-1]
            outputs = self._builder.node(operator.name, edges, types, context.attributes, operator.domain)
        for edge, type_, range_ in zip(outputs, types, ranges, strict=True):
            if not intervals.FULL_RANGES[type_.dtype].contains(range_):
                raise InternalError(
                    f"{operator.name} gives {type_} in {range_}, more than its type may carry"
                )
            self._ranges[edge] = range_
            self._pool.add(edge, type_, range_)
            self._unused[edge] = None

    def _lengths(self, rank: int) -> Shape:
        between, limits = self._rng.between, self._limits
        return tuple([between(limits.min_dim, limits.max_dim) for _ in range(rank)])

    def _placeholder(self, type_: TensorType, allowed: Interval) -> PooledEdge:
        range_ = intervals.draw_interval(self._rng, allowed, type_.dtype)
        edge = self._builder.placeholder(type_)
        self._ranges[edge] = range_
        return edge, type_, range_

    def _finish(self) -> Graph:
        graph = self._builder.finish(tuple(self._unused))
        return concatenate_outputs(graph) if self._settings.concatenate_outputs else graph
