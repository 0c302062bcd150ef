"""A graph under construction whose edges have types and bounds, and the nodes that reconcile them.

Mismatching inputs are repaired by Cast, Reshape, Slice and Pad (graph-based fuzz testing, ICSE 2021). Values
outside of an operator's domain are clipped into it, so that all results are finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fuzzing.cases import Recipe, Tensor
from fuzzing.errors import InternalError
from fuzzing.generate import case_builder
from fuzzing.graph import intervals, operators
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import FULL_RANGES, Interval
from fuzzing.graph.ir import Attribute, Builder, Constant, Graph, Node
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.operator_spec import GraphLimits, NodeContext, OperatorSpec, int64
from fuzzing.graph.types import Shape, TensorType
from fuzzing.rng import Rng

#: Rounding to float16 may enlarge a number by 1/1024, so casts keep away from what a type may carry at most.
_CASTABLE = 0.99
_POOLS = ("AveragePool", "MaxPool")


class GraphDraft:
    """The graph so far.

    ranges  of every edge: bounds on its elements
    """

    def __init__(self, opset: int, limits: GraphLimits, rng: Rng) -> None:
        self.builder = Builder(opset)
        self.ranges: dict[int, Interval] = {}
        self.limits = limits
        self.rng = rng
        self._specs = operators.specifications(opset)

    def spec(self, op: str) -> OperatorSpec:
        """The specification of an operator."""
        return self._specs[op]

    def type(self, edge: int) -> TensorType:
        """The type of an edge; its lengths are known, as no operator of the corpus depends on data."""
        return self.builder.types[edge]

    def placeholder(self, type_: TensorType) -> int:
        """A new input of the graph, of usual numbers."""
        edge = self.builder.placeholder(type_)
        self.ranges[edge] = intervals.draw_interval(self.rng, FULL_RANGES[type_.dtype], type_.dtype)
        return edge

    def weight(self, type_: TensorType, allowed: Interval) -> int:
        """A new initializer within bounds."""
        range_ = intervals.draw_interval(self.rng, allowed, type_.dtype)
        drawn = case_builder.make_recipe(type_, range_, self.rng.seed())
        tensor = drawn.draw() if isinstance(drawn, Recipe) else drawn
        assert isinstance(tensor, Tensor)
        edge = self.builder.constant(Constant(tensor.dtype, tensor.array()))
        self.ranges[edge] = range_
        return edge

    def constant(self, constant: Constant) -> int:
        """A new initializer."""
        return self.builder.constant(constant)

    def context(self, op: str, degree: int) -> NodeContext:
        """The context of a node to be."""
        return NodeContext(self.spec(op), self.builder.opset, self.limits, self.rng, degree)

    def use_edge(self, context: NodeContext, position: int, edge: int) -> None:
        """Makes an edge the input at a position."""
        context.edges[position] = edge
        context.types[position] = self.type(edge)
        context.constants[position] = self.builder.constants.get(edge)
        context.ranges[position] = self.ranges.get(edge)

    def append(self, context: NodeContext) -> tuple[int, ...]:
        """Adds the node of a context; returns the edges of its outputs."""
        operator = context.operator
        types = operator.infer(context)
        ranges = operator.intervals(context, len(types))
        edges = tuple(context.edges)
        while edges and edges[-1] is None:
            edges = edges[:-1]
        outputs = self.builder.node(operator.name, edges, types, context.attributes, operator.domain)
        self.ranges.update(zip(outputs, ranges, strict=True))
        return outputs

    def node(self, op: str, inputs: Sequence[int], attributes: Mapping[str, Attribute] | None = None) -> int:
        """Adds a node with these inputs; returns the edge of its first output."""
        context = self.context(op, len(inputs))
        for position, edge in enumerate(inputs):
            self.use_edge(context, position, edge)
        context.unpack_primary()
        context.attributes = dict(attributes or {})
        return self.append(context)[0]

    def cast(self, edge: int, dtype: str) -> int:
        """The edge as another element type, clipped first to what that type holds."""
        if self.type(edge).dtype == dtype:
            return edge
        if dtype != "bool":
            edge = self.clip(edge, _castable(dtype))
        return self.node("Cast", [edge], {"to": DTYPES[dtype]})

    def clip(self, edge: int, allowed: Interval) -> int:
        """The edge with its elements within bounds."""
        dtype, found = self.type(edge).dtype, self.ranges[edge]
        if allowed.contains(found) or dtype == "bool":
            return edge
        overlap = intervals.intersect(found, allowed)
        low, high = overlap if overlap.low < overlap.high else allowed
        if not dtype.startswith(("float", "bfloat")):
            low, high = math.ceil(low), math.floor(high)
        bounds = [self.constant(make_scalar(dtype, bound)) for bound in (low, high)]
        for bound, number in zip(bounds, (low, high), strict=True):
            self.ranges[bound] = Interval(number, number)
        (made,) = self.builder.node("Clip", (edge, *bounds), (self.type(edge),))
        self.ranges[made] = Interval(low, high)
        return made

    def reshape(self, edge: int, shape: Sequence[int]) -> int:
        """The edge in a shape with as many elements."""
        if self.type(edge).shape == tuple(shape):
            return edge
        return self.node("Reshape", [edge, self.constant(int64(*shape))])

    def reshape_to_rank(self, edge: int, rank: int) -> int:
        """The edge with 1s before its lengths, or with the first ones multiplied."""
        lengths = self.type(edge).lengths
        if len(lengths) <= rank:
            return self.reshape(edge, (1,) * (rank - len(lengths)) + lengths)
        first = len(lengths) - rank
        return self.reshape(edge, (math.prod(lengths[: first + 1]), *lengths[first + 1 :]) if rank else ())

    def fit(self, edge: int, shape: Shape) -> int:
        """The edge cut and padded to a shape; a length of None stays."""
        if not shape and self.type(edge).elements > 1:
            edge = self.fit(edge, (1,) * self.type(edge).rank)
        edge = self.reshape_to_rank(edge, len(shape))
        lengths = self.type(edge).lengths
        wanted = [length if dim is None else dim for length, dim in zip(lengths, shape, strict=True)]
        missing = [max(0, want - length) for want, length in zip(wanted, lengths, strict=True)]
        if any(missing):
            edge = self._pad(edge, missing)
        axes = [axis for axis, want in enumerate(wanted) if want < self.type(edge).lengths[axis]]
        if not axes:
            return edge
        return self.node(
            "Slice",
            [
                edge,
                self.constant(int64(*[0] * len(axes))),
                self.constant(int64(*[wanted[axis] for axis in axes])),
                self.constant(int64(*axes)),
            ],
        )

    def _pad(self, edge: int, missing: Sequence[int]) -> int:
        """The edge with elements appended on each axis: by the window's own padding, where it has one."""
        if self._merge_padding(edge, missing):
            return edge
        return self.node("Pad", [edge, self.constant(int64(*[0] * len(missing), *missing))])

    def _merge_padding(self, edge: int, missing: Sequence[int]) -> bool:
        """Enlarges the padding of the Conv or pool that gives this edge, if nothing else uses the edge yet.

        A pool's padding stays smaller than its kernel, as ONNX runtimes require.
        """
        place = len(self.builder.nodes) - 1
        node = self.builder.nodes[place] if place >= 0 else None
        if node is None or node.outputs[0] != edge or node.op not in ("Conv", *_POOLS) or any(missing[:2]):
            return False
        attributes = node.attributes
        pads, count = attributes.get("pads"), len(missing) - 2
        if not isinstance(pads, tuple) or "strides" in attributes or attributes.get("ceil_mode"):
            return False
        ends = [int(pads[count + axis]) + missing[2 + axis] for axis in range(count)]
        kernel = attributes.get("kernel_shape")
        if node.op in _POOLS and not (
            isinstance(kernel, tuple) and all(map(int.__lt__, ends, map(int, kernel)))
        ):
            return False
        self._replace_node(place, node, {**attributes, "pads": (*pads[:count], *ends)})
        return True

    def _replace_node(self, place: int, node: Node, attributes: Mapping[str, Attribute]) -> None:
        changed = node._replace(attributes=attributes)
        context = NodeContext.from_node(self.spec(node.op), self.builder, changed)
        for position, edge in enumerate(changed.inputs):
            if edge is not None:
                context.ranges[position] = self.ranges.get(edge)
        self.builder.nodes[place] = changed
        types = context.operator.infer(context)
        for edge, type_, range_ in zip(
            changed.outputs, types, context.operator.intervals(context, len(types)), strict=True
        ):
            self.builder.types[edge] = type_
            self.ranges[edge] = range_

    def finish(self, outputs: Sequence[int]) -> Graph:
        """The graph with these outputs; raises InternalError if a bound is more than its type may carry."""
        for node in self.builder.nodes:
            for edge in node.outputs:
                if not FULL_RANGES[self.type(edge).dtype].contains(self.ranges[edge]):
                    raise InternalError(f"{node.op} gives {self.type(edge)} in {self.ranges[edge]}")
        return self.builder.finish(tuple(outputs))


def _castable(dtype: str) -> Interval:
    """What a cast to a type accepts."""
    full = FULL_RANGES[dtype]
    return intervals.scale(full, _CASTABLE) if dtype.startswith(("float", "bfloat")) else full
