"""Whole ONNX models that come without data: a value for each input, drawn by recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fuzzing.cases import Input
from fuzzing.migrate import onnx_inputs, onnx_singles
from fuzzing.migrate.onnx_singles import CannotTellError

if TYPE_CHECKING:
    from onnx import ModelProto


def whole_inputs(model: ModelProto) -> Iterator[tuple[str, Input]]:
    """A value for each input of an inferred model that has no initialiser, seeded by the input's place.

    Raises CannotDrawError, CannotTellError.
    """
    constant = {item.name for item in model.graph.initializer}
    for seed, item in enumerate(model.graph.input):
        if item.name in constant:
            continue
        shape = onnx_inputs.static_shape(item) if item.type.HasField("tensor_type") else None
        if shape is None or not item.type.tensor_type.elem_type:
            raise CannotTellError("an input is no tensor of known type and rank", item.name)
        dtype = onnx_singles.element_type(item)
        yield item.name, onnx_inputs.of_graph(model.graph, item.name, dtype, shape, seed)
