"""Graphs for reduction, from ONNX's text format; nothing is run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx.parser

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.reduce.graph_state import GraphState


def state_of(text: str, opset: int = 18, **inputs: object) -> GraphState:
    """The graph of a model in ONNX's text format; inputs are what it is given."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'
    ).SerializeToString()
    graph = from_onnx(model)
    names = {edge: f"e{edge}" for edge in range(len(graph.types))}
    values = {
        names[edge]: Tensor.of(np.array(inputs[name]))
        for edge, name in graph.names.items()
        if name in inputs and edge in graph.inputs
    }
    case = TestCase(OnnxModel(model), (), Provenance("t", "t", "", "onnx", ""))
    return GraphState(replace(graph, names=names), values, case)
