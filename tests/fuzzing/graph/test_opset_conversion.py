from __future__ import annotations

import numpy as np
import onnx
import pytest

from fuzzing.errors import UnwritableError
from fuzzing.graph import Builder, Subgraph, TensorType
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.opset_conversion import convert_opset
from tests.support.graph_validation import validate
from tests.support.graphs import BRANCHES, feeds, model, runnable
from tests.support.reference_evaluation import all_same, in_onnxruntime

F = TensorType("float32", (2,))
NEWEST = onnx.defs.onnx_opset_version()


def test_operators_at_another_opset_give_the_same() -> None:
    converted, refused = 0, []
    for seed in range(120):
        made = runnable(13, 1).generate(seed)
        try:
            newer = convert_opset(made.graph, 20)
        except UnwritableError as error:
            refused.append(str(error))
            continue
        if newer.nodes == made.graph.nodes:
            continue
        validate(newer)
        assert newer.opset == 20
        onnx.checker.check_model(to_onnx(newer), full_check=True)
        arrays = {f"v{edge}": array for edge, array in feeds(made, seed).items()}
        wanted = in_onnxruntime(to_onnx(made.graph), arrays)
        assert all_same(in_onnxruntime(to_onnx(newer), arrays), wanted), made.graph
        converted += 1
    assert converted > 3
    assert all("bodies cannot be converted from opset 13 to 20" in text for text in refused)


def test_where_no_operator_changed_only_the_number_does() -> None:
    graph = from_onnx(model(BRANCHES))
    there = convert_opset(graph, 22)
    branch = there.nodes[1].attributes["then_branch"]
    assert isinstance(branch, Subgraph)
    assert branch.graph.opset == 22
    assert convert_opset(there, 21) == graph


def test_where_an_operator_changed_onnx_converts_it() -> None:
    builder = Builder(13)
    x = builder.placeholder(TensorType("float32", (2, 3)))
    (y,) = builder.node("ReduceMean", (x,), (TensorType("float32", (2, 1)),), {"axes": (1,)})
    older = builder.finish((y,))
    newer = convert_opset(older, 18)
    validate(newer)
    assert newer.nodes[-1].attributes.get("axes") is None  # an input since opset 18
    array = {"v0": np.arange(6, dtype=np.float32).reshape(2, 3)}
    assert all_same(in_onnxruntime(to_onnx(newer), array), in_onnxruntime(to_onnx(older), array))


def test_bodies_of_operators_that_changed_are_refused() -> None:
    inner = Builder(13)
    edge = inner.capture(TensorType("float32", (2, 3)))
    body = inner.finish(inner.node("ReduceMean", (edge,), (TensorType("float32", (2, 1)),), {"axes": (1,)}))
    builder = Builder(13)
    condition = builder.placeholder(TensorType("bool", ()))
    x = builder.placeholder(TensorType("float32", (2, 3)))
    bodies = {name: Subgraph(body, (x,)) for name in ("then_branch", "else_branch")}
    graph = builder.finish(builder.node("If", (condition,), (TensorType("float32", (2, 1)),), bodies))
    with pytest.raises(UnwritableError, match=r"bodies cannot be converted from opset 13 to 18.*ReduceMean"):
        convert_opset(graph, 18)


def test_what_an_opset_has_not_is_refused() -> None:
    builder = Builder(20)
    x = builder.placeholder(F)
    graph = builder.finish(builder.node("Gelu", (x,), (F,)))
    with pytest.raises(UnwritableError, match="Gelu"):
        convert_opset(graph, 17)
    with pytest.raises(UnwritableError, match=f"opsets 1 to {NEWEST}"):
        convert_opset(graph, NEWEST + 1)
