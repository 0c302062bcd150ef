"""The operands of one node: what rules about them ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzzing.graph.ir import Graph, Node

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
#: The elements of an edge that is a constant or an input of the graph; None for others.
ValueOf = Callable[[int], "Array | None"]


class Operands:
    """The operands of one node: shapes, attributes, and values if known."""

    def __init__(self, graph: Graph, node: Node, value_of: ValueOf) -> None:
        self._graph, self._node, self._value_of = graph, node, value_of

    @property
    def inputs(self) -> int:
        """The number of inputs, omitted ones included."""
        return len(self._node.inputs)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self._node.outputs)

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self._graph.opset

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default."""
        return self._node.attributes.get(name, default)

    def shape(self, place: int) -> Shape | None:
        """The lengths of an input; None if it is omitted or its shape is open."""
        edge = self._edge(place)
        return None if edge is None or not (type_ := self._graph.types[edge]).static else type_.lengths

    @property
    def output_dtype(self) -> str:
        """The element type of the first output."""
        return self._graph.types[self._node.outputs[0]].dtype

    def dtype(self, place: int) -> str:
        """The element type of an input; "" if it is omitted."""
        edge = self._edge(place)
        return "" if edge is None else self._graph.types[edge].dtype

    def value(self, place: int) -> Array | None:
        """The elements of an input, if they are known."""
        edge = self._edge(place)
        return None if edge is None else self._value_of(edge)

    def _edge(self, place: int) -> int | None:
        return self._node.inputs[place] if place < len(self._node.inputs) else None
