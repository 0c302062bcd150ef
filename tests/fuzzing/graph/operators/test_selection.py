from __future__ import annotations

from fuzzing.graph import Builder, TensorType, operators
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from tests.support.operators import check, check_torch, single


def test_where() -> None:
    check("Where", (13, 16), ("float32", "int32", "int64", "uint8"), seeds=8)
    check("Where", (13, 16), ("float16", "bool"), seeds=3, runs=False)
    check("Where", (16,), seeds=20, limits=GraphLimits(min_rank=0, min_dim=0))
    assert check_torch("Where", 18, ("float32", "int64"), seeds=12) == 24


def test_clip() -> None:
    ran = check("Clip", (13, 18), ("float32", "float16", "int8", "int32", "uint8"), seeds=12)
    given = {tuple(edge is not None for edge in item.generated.graph.nodes[0].inputs) for item in ran}
    assert given == {(True,), (True, True), (True, True, True), (True, False, True)}
    assert check_torch("Clip", 18, ("float32", "int32"), seeds=12) == 24


def test_top_k() -> None:
    check("TopK", (13,), ("float32", "float64", "int32", "int64", "uint8"), seeds=8)
    check("TopK", (24,), ("float16", "bfloat16"), seeds=3, runs=False)
    assert check_torch("TopK", 18, ("float32",), seeds=16) == 16


def test_only_one_element_is_taken_where_their_order_is_open() -> None:
    counts = set()
    for seed in range(300):
        graph = single("TopK", seed).graph
        (count,) = graph.constants.values()
        if graph.nodes[0].attributes.get("sorted") == 0:
            counts.add(int(count.array[0]))
    assert counts == {1}


def test_how_many_is_unknown_if_an_input_tells() -> None:
    builder = Builder(18)
    inputs = (
        builder.placeholder(TensorType("float32", (2, 5))),
        builder.placeholder(TensorType("int64", (1,))),
    )
    builder.node("TopK", inputs, (TensorType("float32", None), TensorType("int64", None)), {"axis": -2})
    graph = builder.finish(())
    operator = operators.get_specification("TopK", 18)
    found = operator.infer(NodeContext.from_node(operator, graph, graph.nodes[0]))
    assert found == (TensorType("float32", (None, 5)), TensorType("int64", (None, 5)))
