from __future__ import annotations

import numpy as np
import onnx
import pytest

from fuzzing.graph import Attribute, Builder, Constant, Subgraph, TensorType, operators
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import NodeContext
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, single

NAMES = ("If", "Loop", "Scan")
NUMBER, YES = TensorType("int64", ()), TensorType("bool", ())


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 16, 21), ("float32", "float16"), 8)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("float32", "float16"), 12)


def _counting(ends: bool) -> Subgraph:
    """A loop's body that hands its state on and collects it; with `ends` it asks for an end itself."""
    builder = Builder(21)
    turn, going = builder.placeholder(NUMBER), builder.placeholder(YES)
    state = builder.placeholder(floats(2))
    if ends:
        (onward,) = builder.node("Less", (turn, builder.constant(make_scalar("int64", 1))), (YES,))
    else:
        (onward,) = builder.node("Identity", (going,), (YES,))
    (after,) = builder.node("Tanh", (state,), (floats(2),))
    (kept,) = builder.node("Neg", (state,), (floats(2),))
    return Subgraph(builder.finish((onward, after, kept)))


@pytest.mark.parametrize(
    ("count", "begins", "ends", "length"),
    [
        (make_scalar("int64", 3), None, False, 3),
        (make_scalar("int64", 3), make_scalar("bool", True), False, 3),
        (make_scalar("int64", 3), make_scalar("bool", False), False, None),
        (make_scalar("int64", 3), None, True, None),
        (NUMBER, None, False, None),
        (make_scalar("int64", -1), None, False, 0),
    ],
)
def test_what_a_loop_collects_is_as_long_as_it_is_known_to_run(
    count: Constant | TensorType, begins: Constant | None, ends: bool, length: int | None
) -> None:
    found = inferred("Loop", 21, (count, begins, floats(2)), {"body": _counting(ends)}, outputs=2)
    assert [type_.shape for type_ in found] == [(2,), (length, 2)]


def _branch(shape: tuple[int, ...]) -> Subgraph:
    builder = Builder(21)
    (made,) = builder.node("Identity", (builder.constant(_zeros(shape)),), (floats(*shape),))
    return Subgraph(builder.finish((made,)))


def _zeros(shape: tuple[int, ...]) -> Constant:
    return Constant("float32", np.zeros(shape, np.float32))


def test_branches_of_different_lengths_leave_it_open() -> None:
    branches = {"then_branch": _branch((2, 3)), "else_branch": _branch((2, 4))}
    assert inferred("If", 21, (YES,), branches)[0].shape == (2, None)


def test_a_scan_along_any_axes() -> None:
    builder = Builder(21)
    state, part = builder.placeholder(floats(2, 4)), builder.placeholder(floats(2, 4))
    (after,) = builder.node("Add", (state, part), (floats(2, 4),))
    (kept,) = builder.node("Neg", (part,), (floats(2, 4),))
    body = Subgraph(builder.finish((after, kept)))
    attributes: dict[str, Attribute] = {
        "body": body,
        "num_scan_inputs": 1,
        "scan_input_axes": (-2,),
        "scan_output_axes": (-1,),
    }
    found = inferred("Scan", 21, (floats(2, 4), floats(2, 3, 4)), attributes, outputs=2)
    assert [type_.shape for type_ in found] == [(2, 4), (2, 4, 3)]


@pytest.mark.parametrize("name", ["If", "Loop"])
def test_bodies_use_edges_from_outside(name: str) -> None:
    captured = 0
    for seed in range(20):
        graph = single(name, seed, 21).graph
        node = next(node for node in graph.nodes if node.op == name)
        bodies = [value for value in node.attributes.values() if isinstance(value, Subgraph)]
        captured += sum(len(body.captures) for body in bodies)
        operator = operators.get_specification(name, 21)
        context = NodeContext.from_node(operator, graph, node)
        assert operator.infer(context) == tuple(graph.types[edge] for edge in node.outputs)
        onnx.checker.check_model(to_onnx(graph), full_check=True)
    assert captured >= 20


def test_loops_run_up_to_three_times_and_end_early_sometimes() -> None:
    counts, early = set(), 0
    for seed in range(80):
        graph = single("Loop", seed, 21).graph
        node = next(node for node in graph.nodes if node.op == "Loop")
        counts.add(int(graph.constants[node.inputs[0] or 0].array))
        body = node.attributes["body"]
        assert isinstance(body, Subgraph)
        early += any(inner.op == "Less" for inner in body.graph.nodes)
    assert counts == {0, 1, 2, 3}
    assert early


def test_what_follows_a_loop_is_inferred_all_the_same() -> None:
    """onnx lets a loop's state change its shape, so of what follows it would know nothing."""
    builder = Builder(21)
    start = builder.placeholder(floats(2))
    count = builder.constant(make_scalar("int64", 2))
    state, _ = builder.node(
        "Loop", (count, None, start), (floats(2), floats(2, 2)), {"body": _counting(ends=False)}
    )
    (after,) = builder.node("Relu", (state,), (floats(2),))
    (last,) = builder.node("Relu", (after,), (floats(2),))
    model = onnx.shape_inference.infer_shapes(to_onnx(builder.finish((last,))), strict_mode=True)
    (found,) = (value for value in model.graph.value_info if value.name == f"v{after}")
    assert [dim.dim_value for dim in found.type.tensor_type.shape.dim] == [2]
