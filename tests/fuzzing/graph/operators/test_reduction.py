from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph import Builder, Constant, TensorType, operators
from fuzzing.graph.operator_spec import GraphLimits, NodeContext, int64
from fuzzing.rng import Rng
from tests.support.operators import check, check_torch, single

_NAMES = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@pytest.mark.parametrize("name", _NAMES)
def test_reductions_of_floats(name: str) -> None:
    check(name, (13, 18, 21), seeds=10)
    check(name, (18,), ("float64", "float16"), seeds=4)
    check(name, (18,), ("bfloat16",), seeds=2, runs=False)
    assert check_torch(name, 17, seeds=8) == 8
    assert check_torch(name, 18, seeds=12) == 12


@pytest.mark.parametrize("name", [name for name in _NAMES if not name.startswith("ReduceLog")])
def test_reductions_of_integers(name: str) -> None:
    check(name, (13, 20), ("int32", "int64"), seeds=6)
    assert check_torch(name, 18, ("int32", "int64"), seeds=6) == 12


def test_extremes_take_truth_values_and_bytes() -> None:
    for name in ("ReduceMax", "ReduceMin"):
        check(name, (20,), ("bool", "int8", "uint8"), seeds=4)
    assert "bool" not in operators.get_specification("ReduceMax", 19).dtypes


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_places_of_extremes(name: str) -> None:
    check(name, (13,), ("float32", "float16", "int8", "int32", "int64"), seeds=6)
    assert check_torch(name, 18, ("float32",), seeds=12) == 12


@pytest.mark.parametrize(("name", "opset"), [("ReduceMean", 13), ("ReduceMean", 18), ("ArgMax", 18)])
def test_nothing_is_reduced_to_a_scalar_unless_scalars_are_asked_for(name: str, opset: int) -> None:
    ranks = [single(name, seed, opset).graph.types[-1].rank for seed in range(150)]
    assert min(ranks) == 1
    requested = GraphLimits(min_rank=0)
    ranks = [single(name, seed, opset, limits=requested).graph.types[-1].rank for seed in range(150)]
    assert min(ranks) == 0
    check(name, (opset,), seeds=20, limits=requested)


def test_axes_are_counted_from_the_end_left_out_and_empty_now_and_then() -> None:
    found: list[tuple[int, ...] | None] = []
    for seed in range(300):
        graph = single("ReduceSum", seed, 21).graph
        found += [tuple(constant.array.tolist()) for constant in graph.constants.values()] or [None]
    assert () in found
    assert None in found
    assert any(axes and axes[0] < 0 for axes in found)
    assert any(axes and len(axes) > 1 for axes in found)


def _inferred(axes: int | None, shape: tuple[int | None, ...] | None, **attributes: int) -> TensorType:
    """What a ReduceSum gives that was read and not drawn; its axes are constant 1, or an input if -1."""
    builder = Builder(21)
    x = builder.placeholder(TensorType("float32", shape))
    inputs: tuple[int, ...] = (x,)
    if axes == -1:
        inputs = (x, builder.placeholder(TensorType("int64", (1,))))
    elif axes is not None:
        inputs = (x, builder.constant(int64(axes)))
    builder.node("ReduceSum", inputs, (TensorType("float32", None),), attributes)
    graph = builder.finish(())
    (found,) = operators.get_specification("ReduceSum", 21).infer(
        NodeContext.from_node(operators.get_specification("ReduceSum", 21), graph, graph.nodes[0])
    )
    return found


def test_types_of_nodes_that_were_read() -> None:
    assert _inferred(1, (2, None, 4)).shape == (2, 1, 4)
    assert _inferred(1, (None, 3), keepdims=0).shape == (None,)
    assert _inferred(-1, (2, 3)).shape == (None, None)
    assert _inferred(-1, (2, 3), keepdims=0).shape is None
    assert _inferred(None, (2, 3), keepdims=0).shape == ()
    assert _inferred(None, (2, 3), noop_with_empty_axes=1).shape == (2, 3)
    assert _inferred(1, None).shape is None


def test_more_elements_leave_less_room_for_each() -> None:
    within = operators.get_specification("ReduceSum", 21).within
    few, many = within(TensorType("float16", (4,))), within(TensorType("float16", (4, 1000)))
    assert few.high > 500 * many.high
    assert many.high * 4000 < 6e3


def test_no_reduction_of_a_huge_tensor_is_left_without_values() -> None:
    type_ = TensorType("float16", (1 << 20,))
    for name in _NAMES:
        low, high = operators.get_specification(name, 21).within(type_)
        assert low < high, name
    product = operators.get_specification("ReduceProd", 21).within(TensorType("int32", (1 << 20,)))
    assert product == (-1, 1)


def test_the_first_of_equals_is_found_from_either_end() -> None:
    operator = operators.get_specification("ArgMax", 18)
    context = NodeContext(operator, 18, GraphLimits(), Rng(0), 1)
    context.types[0] = Constant("int32", np.array([3, 7, 7])).type
    context.attributes["select_last_index"] = 1
    context.unpack_primary()
    assert callable(operator.torch)
    torch = pytest.importorskip("torch")
    text = operator.torch(context, ["x"])
    assert text is not None
    assert eval(text, {"torch": torch, "x": torch.tensor([3, 7, 7])}).tolist() == [2]
