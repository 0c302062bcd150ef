"""Inputs for whole ONNX models that come without data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fuzzing.cases import Input
from fuzzing.migrate import onnx_input_values, onnx_single_nodes
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError

if TYPE_CHECKING:
    from onnx import ModelProto


def draw_inputs(model: ModelProto) -> Iterator[tuple[str, Input]]:
    """A value for each input of an inferred model without an initializer, seeded by the input's index.

    Raises CannotDrawError, UnsupportedModelError.
    """
    constant = {item.name for item in model.graph.initializer}
    for seed, item in enumerate(model.graph.input):
        if item.name in constant:
            continue
        shape = onnx_input_values.static_shape(item) if item.type.HasField("tensor_type") else None
        if shape is None or not item.type.tensor_type.elem_type:
            raise UnsupportedModelError("an input is no tensor of known type and rank", item.name)
        dtype = onnx_single_nodes.element_type(item)
        yield item.name, onnx_input_values.draw_graph_input(model.graph, item.name, dtype, shape, seed)
