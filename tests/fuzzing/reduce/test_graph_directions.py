"""Recurrent operators of two directions, of which the failure needs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fuzzing.cases import Tensor
from fuzzing.reduce.engine import CLEAN, SAME, Pass, ReductionSpec, reduce
from fuzzing.reduce.graph_simplification import take_one_direction
from fuzzing.reduce.graph_state import GraphState
from fuzzing.reduce.graph_validity import is_valid
from fuzzing.reduce.graphs import SPEC
from tests.fuzzing.reduce.graph_states import state_of

STEPS, BATCH, SIZE, HIDDEN = 3, 2, 4, 5
#: Operator → gates.
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ONLY = ReductionSpec[GraphState](SPEC.size, SPEC.key, (Pass("directions", take_one_direction),))


def bidirectional(op: str, layout: int = 0, more: str = "") -> GraphState:
    """An operator with every operand that has entries for two directions."""
    rows = GATES[op] * HIDDEN
    shapes = {
        "x": (BATCH, STEPS, SIZE) if layout else (STEPS, BATCH, SIZE),
        "w": (2, rows, SIZE),
        "r": (2, rows, HIDDEN),
        "b": (2, 2 * rows),
        "h": (BATCH, 2, HIDDEN) if layout else (2, BATCH, HIDDEN),
    }
    if op == "LSTM":
        shapes |= {"c": shapes["h"], "p": (2, 3 * HIDDEN)}
    drawn = np.random.default_rng(7)
    given = {name: drawn.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    declared = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    result = (BATCH, STEPS, 2, HIDDEN) if layout else (STEPS, 2, BATCH, HIDDEN)
    attributes = f'hidden_size = {HIDDEN}, layout = {layout}, direction = "bidirectional"{more}'
    operands = ", ".join(given).replace("b, h", 'b, "", h')  # without lengths of sequences
    return state_of(
        f"({declared}) => (float[{','.join(map(str, result))}] y) {{ y = {op}<{attributes}>({operands}) }}",
        14,
        **given,
    )


def reduced(start: GraphState, shows: Callable[[GraphState], bool]) -> GraphState:
    def classify(candidates: Sequence[GraphState]) -> list[str]:
        assert all(map(is_valid, candidates))
        return [SAME if shows(one) else CLEAN for one in candidates]

    return reduce(start, ONLY, classify).best


def outputs(state: GraphState) -> Any:
    import onnxruntime

    case = state.case()
    session = onnxruntime.InferenceSession(case.program.to_bytes(), providers=["CPUExecutionProvider"])
    given = {name: value.array() for name, value in case.values() if isinstance(value, Tensor)}
    return session.run(None, given)[0]


@pytest.mark.compiler_onnxruntime
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", [None, "reverse"])
def test_either_direction_computes_what_it_did_beside_the_other(op: str, direction: str | None) -> None:
    start = bidirectional(op)
    best = reduced(start, lambda one: one.graph.nodes[0].attributes.get("direction") == direction)
    [node] = best.graph.nodes
    assert node.attributes.get("direction") == direction
    place = 0 if direction is None else 1
    np.testing.assert_allclose(outputs(best), outputs(start)[:, place : place + 1], rtol=1e-5)


@pytest.mark.parametrize("op", GATES)
def test_states_that_have_the_batch_first_keep_their_batch(op: str) -> None:
    best = reduced(bidirectional(op, layout=1), lambda _one: True)
    [output] = best.graph.outputs
    assert best.graph.types[output].shape == (BATCH, STEPS, 1, HIDDEN)
    assert best.graph.types[best.graph.nodes[0].inputs[5] or 0].shape == (BATCH, 1, HIDDEN)


def test_each_direction_has_functions_of_its_own() -> None:
    start = bidirectional("RNN", more=', activations = ["Tanh", "Relu"]')
    best = reduced(start, lambda one: one.graph.nodes[0].attributes.get("direction") == "reverse")
    assert best.graph.nodes[0].attributes["activations"] == ("Relu",)


def test_two_directions_stay_where_the_failure_needs_them() -> None:
    start = bidirectional("GRU")
    assert reduced(start, lambda one: one is start) is start


def test_weights_that_another_node_gives_stay_in_two_directions() -> None:
    text = (
        "(float[3,2,4] x, float[2,5,4] v, float[2,5,5] r) => (float[3,2,2,5] y) "
        '{ w = Abs(v)  y = RNN<hidden_size = 5, direction = "bidirectional">(x, w, r) }'
    )
    start = state_of(text, 14, x=np.ones((3, 2, 4), "float32"))
    assert reduced(start, lambda _one: True) is start
