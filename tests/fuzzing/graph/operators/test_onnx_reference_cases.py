"""The shape functions beside ONNX's own test cases: what they say must be what its reference gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

from fuzzing.graph import operators
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.types import TensorType

_NAMES = (
    "AffineGrid", "CenterCropPad", "Col2Im", "Compress", "Concat", "Constant", "ConstantOfShape",
    "DepthToSpace", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "GridSample",
    "MaxRoiPool", "NonMaxSuppression", "NonZero", "OneHot", "Pad", "Range", "Reshape", "Resize",
    "ReverseSequence", "RoiAlign", "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "SpaceToDepth",
    "Split", "Squeeze", "TensorScatter", "Tile", "Transpose", "Trilu", "Unique", "Unsqueeze",
)  # fmt: skip


def _cases() -> Iterator[tuple[ModelProto, list[Any], list[Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            model = case.model
            if isinstance(model, ModelProto) and len(model.graph.node) == 1 and case.data_sets:
                inputs, outputs = case.data_sets[0]
                yield model, list(inputs), list(outputs)


def _with_constants(model: ModelProto, inputs: list[Any], primary: int) -> ModelProto:
    """The same with all inputs but the lead as initializers."""
    made = ModelProto()
    made.CopyFrom(model)
    declared = list(made.graph.input)
    del made.graph.input[:]
    for place, (item, value) in enumerate(zip(declared, inputs, strict=True)):
        if place == primary:
            made.graph.input.append(item)
        else:
            made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), item.name))
    return made


def _said(graph: Graph) -> tuple[TensorType, ...]:
    node = graph.nodes[0]
    operator = operators.get_specification(node.op, graph.opset)
    return operator.infer(NodeContext.from_node(operator, graph, node))


def test_shapes_are_those_of_onnx_own_cases() -> None:
    """With constants all that the data do not tell is known; without, nothing wrong is said."""
    seen, seen_dynamic = set(), 0
    for model, inputs, outputs in _cases():
        node, opset = model.graph.node[0], model.opset_import[0].version
        if node.op_type not in _NAMES or node.op_type not in operators.specifications(opset):
            continue
        operator = operators.get_specification(node.op_type, opset)
        for constants in (True, False):
            given = _with_constants(model, inputs, operator.primary) if constants else model
            for type_, array in zip(_said(from_onnx(given)), map(np.asarray, outputs), strict=True):
                label = (node.op_type, onnx.printer.to_text(given.graph)[:400], str(type_), array.shape)
                if type_.shape is None:
                    assert not constants, label
                    continue
                assert len(type_.shape) == array.ndim, label
                for output, length in zip(type_.shape, array.shape, strict=True):
                    assert output in (None, length), label
                assert type_.static or not constants or operator.data_dependent, label
                seen_dynamic += not type_.static
            seen.add(node.op_type)
    # MaxRoiPool has no case, and those of Constant, Range and TensorScatter may be of newer opsets.
    assert len(seen) >= len(_NAMES) - 4
    assert seen_dynamic > 50
