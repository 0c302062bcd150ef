"""Operators of ONNX's judge that ours stand in for: they agree with onnxruntime where onnx's do not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnx.reference.op_run
import onnxruntime
import pytest

from fuzzing.backends import _onnx_mended
from fuzzing.draws import Draws, derive
from fuzzing.generate.isra import Generated, Settings, Solver
from fuzzing.graph.onnx_writer import to_onnx
from tests.support.operators import fill

Array = np.ndarray[Any, Any]
#: Operator → opset, element type, and how many nodes are looked at.
FORMS = {
    "GlobalMaxPool": (13, "float32", 15),
    "GlobalLpPool": (13, "float32", 15),
    "LRN": (13, "float32", 15),
    "GatherElements": (18, "float32", 15),
    "ReduceSumSquare": (18, "int32", 15),
    "Mean": (13, "float32", 40),
    "MaxPool": (21, "float32", 60),
    "AveragePool": (21, "float32", 60),
    "LpPool": (21, "float32", 60),
    "BatchNormalization": (13, "float32", 10),
    "LayerNormalization": (21, "float16", 25),
}


def feeds(generated: Generated, seed: int) -> dict[str, Array]:
    graph, draws = generated.graph, Draws(seed)
    return {f"v{edge}": fill(graph.types[edge], generated.ranges[edge], draws) for edge in graph.inputs}


def compiled(model: onnx.ModelProto, given: dict[str, Array]) -> list[Array] | None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    found: list[Array] = session.run(None, given)
    return found


def agree(mine: list[Array], theirs: list[Array], near: float) -> bool:
    return all(
        (a.dtype, a.shape) == (b.dtype, b.shape) and np.allclose(a, b, rtol=near, atol=near)
        for a, b in zip(mine, theirs, strict=True)
    )


def evaluated(model: onnx.ModelProto, given: dict[str, Array], new_ops: list[Any] | None) -> list[Array]:
    evaluator = onnx.reference.ReferenceEvaluator(model, new_ops=new_ops)
    return [np.asarray(found) for found in evaluator.run(None, given)]


@pytest.mark.parametrize("name", FORMS)
def test_ours_agrees_with_onnxruntime_where_the_evaluator_does_not(name: str) -> None:
    opset, dtype, count = FORMS[name]
    solver = Solver(Settings(nodes=(1, 1), opset=opset, operators=(name,), dtypes=(dtype,), picking_rate=0.0))
    mended, near = _onnx_mended.operators(onnx), 1e-2 if dtype == "float16" else 1e-4
    compared = wrong = 0
    for number in range(count):
        generated = solver.generate(derive(number, name))
        model, given = to_onnx(generated.graph), feeds(generated, number)
        theirs = compiled(model, given)
        if theirs is None:
            continue
        compared += 1
        assert agree(evaluated(model, given, mended), theirs, near), generated.graph
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wrong += not agree(evaluated(model, given, None), theirs, near)
        except Exception:  # noqa: BLE001 - whatever the evaluator fails with
            wrong += 1
    assert compared
    assert wrong, f"onnx {onnx.__version__} gets {name} right by now: ours can go"


def test_a_determinant_has_the_type_of_its_matrix() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float16[3,2,2] x) => (float16[3] y) { y = Det(x) }'
    )
    x = np.array([[[1, 2], [3, 4]], [[2, 0], [0, 2]], [[1, 1], [1, 1]]], np.float16)
    [found] = evaluated(model, {"x": x}, _onnx_mended.operators(onnx))
    assert found.dtype == np.float16
    assert found.tolist() == [-2, 4, 0]


@pytest.mark.parametrize(("storage", "places"), [(0, [3, 5]), (1, [4, 5])])
def test_places_of_the_largest_elements_are_counted_in_the_order_asked_for(
    storage: int, places: list[int]
) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> '
        "g (float[1,1,3,2] x) => (float[1,1,2,1] y, int64[1,1,2,1] i)"
        f"{{ y, i = MaxPool<kernel_shape = [2, 2], storage_order = {storage}>(x) }}"
    )
    x = np.array([[[[0, 1], [2, 3], [0, 4]]]], np.float32)
    found, indices = evaluated(model, {"x": x}, _onnx_mended.operators(onnx))
    assert found.ravel().tolist() == [3, 4]
    theirs = compiled(model, {"x": x})
    assert theirs is not None
    assert indices.ravel().tolist() == theirs[1].ravel().tolist() == places
