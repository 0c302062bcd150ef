from __future__ import annotations

import pytest

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

NAMES = ("Attention", "RotaryEmbedding")
#: All inputs, those of what was there before too.
WIDE = GraphLimits(max_inputs=8)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (23, 24), ("float32", "float16"), 10, WIDE)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (23,), ("float32", "float16"), 10, WIDE)


def test_torch_computes_the_same() -> None:
    assert check_torch("Attention", 23, seeds=30) == 30


def test_fewer_heads_of_keys_than_of_queries() -> None:
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    query, key, value = floats(2, 3, 8), floats(2, 5, 4), floats(2, 5, 6)
    found = inferred("Attention", 23, (query, key, value), heads, outputs=4)
    assert [type_.shape for type_ in found] == [(2, 3, 12), (2, 2, 5, 2), (2, 2, 5, 3), (2, 4, 3, 5)]


def test_what_was_there_before_makes_keys_longer() -> None:
    four = floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)
    past = floats(1, 2, 6, 4), floats(1, 2, 6, 4)
    found = inferred("Attention", 23, (*four, None, *past), outputs=3)
    assert [type_.shape for type_ in found] == [(1, 2, 3, 4), (1, 2, 11, 4), (1, 2, 11, 4)]


def test_both_layouts_are_drawn() -> None:
    ranks = {single("Attention", seed, 23).graph.types[0].rank for seed in range(40)}
    assert {3, 4} <= ranks


def test_masks_let_each_query_see_something() -> None:
    masked = 0
    for seed in range(80):
        graph = single("Attention", seed, 23, limits=WIDE).graph
        inputs = graph.nodes[0].inputs
        if len(inputs) > 3 and inputs[3] is not None and graph.types[inputs[3]].dtype == "bool":
            masked += 1
            assert graph.constants[inputs[3]].array[..., 0].all()
    assert masked


def test_no_causal_diagonal_is_in_doubt() -> None:
    """Behind a past there is one only where keys are as many as queries."""
    causal = doubtful = 0
    for seed in range(120):
        graph = single("Attention", seed, 23).graph
        node = graph.nodes[0]
        if len(node.inputs) < 6:
            continue
        lengths = [graph.types[edge].lengths[-2] for edge in node.inputs[:2] if edge is not None]
        causal += bool(dict(node.attributes).get("is_causal"))
        doubtful += bool(dict(node.attributes).get("is_causal")) and lengths[0] != lengths[1]
    assert causal > 3
    assert doubtful == 0
