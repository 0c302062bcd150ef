"""Builds the nodes of patterns, with types from the operators' own specifications."""

from __future__ import annotations

from fuzzing.graph import operators
from fuzzing.graph.constants import make_constant, make_scalar
from fuzzing.graph.ir import Attribute, Builder, Node
from fuzzing.graph.operator_spec import NodeContext


class PatternBuilder:
    """Adds nodes to a graph under construction.

    dtype  the element type of constant numbers
    """

    def __init__(self, builder: Builder, dtype: str) -> None:
        self._builder = builder
        self._dtype = dtype

    def node(self, op: str, *inputs: int, **attributes: Attribute) -> int:
        """Adds a node; returns its first output."""
        builder = self._builder
        context = NodeContext.from_node(
            operators.get_specification(op, builder.opset), builder, Node(op, inputs, (0,), attributes)
        )
        return builder.node(op, inputs, context.operator.infer(context), attributes)[0]

    def number(self, value: float) -> int:
        """A constant of rank 0."""
        return self._builder.constant(make_scalar(self._dtype, value))

    def integers(self, *values: int) -> int:
        """A constant vector of int64."""
        return self._builder.constant(make_constant("int64", values))

    def mean(self, edge: int, *axes: int) -> int:
        """ReduceMean with keepdims; its axes are an input from opset 18 on."""
        if self._builder.opset < 18:
            return self.node("ReduceMean", edge, axes=axes)
        return self.node("ReduceMean", edge, self.integers(*axes))
