from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes

from fuzzing.graph import TensorType, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.graph.operators.arithmetic import broadcast, draw_further_shape, draw_second_shape, total
from fuzzing.rng import Rng
from tests.support.operators import check, check_torch, single

_INTEGERS = ("int8", "int32", "int64", "uint8", "uint32")


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div"])
def test_the_four_operations(name: str) -> None:
    check(name, (13, 14), ("float32", "float64", "int32", "uint64"), seeds=6)
    check(name, (18,), ("float16", *_INTEGERS), seeds=6)
    check(name, (18,), ("bfloat16",), seeds=2, runs=False)
    assert check_torch(name, 18, ("float32", "float16", "int8", "int32", "int64", "uint8"), seeds=6) == 36


def test_mod_of_floats_and_integers() -> None:
    check("Mod", (13,), ("float32", "float16", "float64", *_INTEGERS), seeds=8)
    assert check_torch("Mod", 18, ("float32", "int8", "int32", "uint8"), seeds=12) == 48


def test_mod_of_floats_always_asks_for_fmod_and_that_of_integers_mostly_keeps_the_default() -> None:
    floats = [single("Mod", seed).graph.nodes[0].attributes for seed in range(20)]
    assert all(attributes == {"fmod": 1} for attributes in floats)
    whole = [single("Mod", seed, dtypes=("int32",)).graph.nodes[0].attributes for seed in range(60)]
    assert {tuple(attributes.values()) for attributes in whole} == {(), (0,), (1,)}


def test_pow() -> None:
    check("Pow", (13, 15), ("float32", "float64", "int32", "int64"), seeds=12)
    check("Pow", (13, 15), ("float16", "bfloat16"), seeds=4, runs=False)
    assert check_torch("Pow", 18, ("float32", "int32"), seeds=20) >= 30


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean"])
def test_one_to_five_tensors(name: str) -> None:
    ran = check(name, (13, 18), ("float32", "float16"), seeds=12)
    assert {len(item.generated.graph.nodes[0].inputs) for item in ran} == {1, 2, 3, 4, 5}
    check(name, (13,), ("bfloat16", "float64"), seeds=2, runs=False)
    assert check_torch(name, 18, ("float32", "float16"), seeds=10) == 20


def test_extremes_of_integers() -> None:
    for name in ("Max", "Min"):
        check(name, (13,), _INTEGERS, seeds=4)
        assert check_torch(name, 18, ("int8", "int32", "int64", "uint8"), seeds=4) == 16


def test_prelu_broadcasts_its_slope_one_way() -> None:
    ran = check("PRelu", (13, 16), ("float32",), seeds=40)
    for item in ran:
        graph = item.generated.graph
        primary, slope = graph.nodes[0].inputs
        assert primary is not None
        assert slope is not None
        assert (
            broadcast(graph.types[primary].lengths, graph.types[slope].lengths)
            == graph.types[primary].lengths
        )
    # onnxruntime has no PRelu of integers, which ONNX allows
    check("PRelu", (13, 16), ("float16", "int32", "uint64"), seeds=4, runs=False)
    assert check_torch("PRelu", 18, seeds=10) == 10


@given(shapes.mutually_broadcastable_shapes(num_shapes=3, min_side=0))
def test_broadcast_is_numpys(found: shapes.BroadcastableShapes) -> None:
    assert broadcast(*found.input_shapes) == np.broadcast_shapes(*found.input_shapes)


def test_an_unknown_length_stays_one_unless_another_settles_it() -> None:
    assert broadcast((None, 3), (1, 3)) == (None, 3)
    assert broadcast((None, 3), (4, 1)) == (4, 3)
    assert broadcast((None,), (2, 1)) == (2, None)


_LENGTHS = st.lists(st.integers(0, 5), max_size=5).map(tuple)


def _context(shape: tuple[int | None, ...], seed: int) -> NodeContext:
    context = NodeContext(
        operators.get_specification("Add", 18), 18, GraphLimits(max_elements=64), Rng(seed), 2
    )
    context.types[0] = TensorType("float32", shape)
    context.unpack_primary()
    return context


@given(_LENGTHS, st.integers(0, 2**32))
def test_a_partner_broadcasts_to_the_lead(shape: tuple[int, ...], seed: int) -> None:
    assert broadcast(shape, draw_second_shape(_context(shape, seed))) == shape


@given(_LENGTHS, st.integers(0, 2**32))
def test_a_companion_broadcasts_with_the_lead_and_grows_within_the_limits(
    shape: tuple[int, ...], seed: int
) -> None:
    context = _context(shape, seed)
    found = TensorType("float32", broadcast(shape, draw_further_shape(context)))
    assert found.rank <= max(len(shape), context.limits.max_rank)
    assert found.elements <= max(context.x.elements, context.limits.max_elements)


def test_companions_are_seldom_of_another_shape_and_then_shrink_or_grow() -> None:
    found = [draw_further_shape(_context((3, 1, 2), seed)) for seed in range(2000)]
    others = [shape for shape in found if shape != (3, 1, 2)]
    assert 0.02 < len(others) / len(found) < 0.1
    assert any(broadcast((3, 1, 2), shape) == (3, 1, 2) for shape in others)
    assert any(broadcast((3, 1, 2), shape) != (3, 1, 2) for shape in others)


def test_what_goes_with_a_length_that_only_the_data_tell() -> None:
    for seed in range(200):
        for shape in (
            draw_second_shape(_context((None, 3), seed)),
            draw_further_shape(_context((None, 3), seed)),
        ):
            assert shape in ((1, 3), (1, 1), (3,), (1,))


def test_sums_of_one_sign_keep_it_and_others_may_cancel_to_a_little() -> None:
    assert total([Interval(0, 1), Interval(0, 2)], "float32").low == 0
    assert total([Interval(1, 2), Interval(-1, 0)], "float32").low < 0
    assert total([Interval(1, 2), Interval(-1, 0)], "int32") == Interval(0, 2)
