from __future__ import annotations

from typing import Any

import pytest

from fuzzing.errors import UnwritableError
from fuzzing.graph import Attribute, Graph, Node
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.torch_writer import to_torch
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

NAMES = ("RNN", "GRU", "LSTM")
WIDE = GraphLimits(max_inputs=8)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 21, 22), ("float32", "float16"), 6, WIDE)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("float32", "float16"), 8, WIDE)


@pytest.mark.parametrize(
    ("layout", "first", "last"), [(0, (5, 2, 3, 4), (2, 3, 4)), (1, (3, 5, 2, 4), (3, 2, 4))]
)
def test_the_batch_comes_first_if_it_is_to(
    layout: int, first: tuple[int, ...], last: tuple[int, ...]
) -> None:
    x = floats(5, 3, 2) if layout == 0 else floats(3, 5, 2)
    attributes: dict[str, Attribute] = {"hidden_size": 4, "layout": layout, "direction": "bidirectional"}
    found = inferred("LSTM", 21, (x, floats(2, 16, 2), floats(2, 16, 4)), attributes, outputs=3)
    assert [type_.shape for type_ in found] == [first, last, last]


def test_optional_inputs_come_and_go() -> None:
    seen = set()
    for seed in range(150):
        node = single("LSTM", seed, 21, limits=WIDE).graph.nodes[0]
        seen |= {(place, edge is not None) for place, edge in enumerate(node.inputs) if place > 2}
    assert seen >= {(place, given) for place in (3, 4, 5, 6) for given in (True, False)}
    assert (7, True) in seen


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same_where_it_can(name: str) -> None:
    assert check_torch(name, 21, seeds=60) >= 10


def test_torch_has_nothing_for_rows_that_end_early() -> None:
    for seed in range(200):
        graph = single("LSTM", seed, 21).graph
        inputs = graph.nodes[0].inputs
        if len(inputs) > 4 and inputs[4] is not None:
            break
    with pytest.raises(UnwritableError, match="LSTM"):
        to_torch(graph)


def test_a_single_output_is_no_tuple() -> None:
    import torch

    node = Node("RNN", (0, 1, 2), (3,), {"hidden_size": 2})
    types = (floats(3, 1, 2), floats(1, 2, 2), floats(1, 2, 2), floats(3, 1, 1, 2))
    scope: dict[str, Any] = {}
    exec(to_torch(Graph(21, types, (0, 1, 2), {}, (node,), (3,))), scope)
    made = scope["forward"](torch.ones(3, 1, 2), torch.ones(1, 2, 2), torch.ones(1, 2, 2))
    assert made.shape == (3, 1, 1, 2)


@pytest.mark.parametrize(("name", "most"), [("RNN", 6), ("GRU", 6), ("LSTM", 8)])
def test_states_and_peepholes_come_without_being_asked_for(name: str, most: int) -> None:
    """The limit on the number of inputs is one for operators of any number."""
    assert max(len(single(name, seed).graph.nodes[0].inputs) for seed in range(40)) == most
