"""The metrics: worked examples, counted by hand from the definitions in docs/coverage.md."""

from __future__ import annotations

import onnx.checker
import pytest
from onnx import ModelProto, helper

from fuzzing.coverage import GraphCounts, OperatorSet, Tally, extract_scopes, metrics_of, operators
from fuzzing.coverage.metrics import MAX_SPC, observe_operators, operator_levels
from tests.fuzzing.coverage.coverage_kit import SIX, build_tally, first_model, model_of, named, second_model

UNARY = OperatorSet("unary", {"Relu": frozenset({1}), "Abs": frozenset({1})})


def values(tally: Tally, reading: str) -> dict[str, float]:
    return {name: metric[reading]["value"] for name, metric in metrics_of(tally).items() if reading in metric}


def test_the_examples_are_valid_models() -> None:
    for model in (first_model(), second_model()):
        onnx.checker.check_model(model, full_check=True)


def test_the_figures_of_each_graph() -> None:
    _, [first, second] = build_tally(SIX, first_model(), second_model())
    # a→b (by two tensors), a→c, b→d, c→d, d→e, c→f; a→b→d, a→c→d, a→c→f, b→d→e, c→d→e.
    assert first == GraphCounts(
        6, 4, edges=6, pairs=4, paths=5, triples=3, shapes=3, attributes=4, new_attributes=4
    )
    # Split→Relu, Relu→Split, Split→Add (by two tensors). Only Split's attributes are new.
    assert second == GraphCounts(
        4, 3, edges=3, pairs=3, paths=2, triples=2, shapes=3, attributes=3, new_attributes=1
    )


def test_all_eleven_as_the_paper_says() -> None:
    tally, _ = build_tally(SIX, first_model(), second_model())
    assert values(tally, "paper") == pytest.approx(
        {
            "OTC": 5 / 6,  # all but Flatten, which only closes
            "IDC": (1 + 1 + 1 + 1 / 5 + 1 / 2) / 6,
            "ODC": (2 + 2 + 1 + 1 + 2) / 12 / 6,  # Relu 3 1, Add 1 2, Concat 1, Abs 1, Split 1 2
            "SEC": 7 / 6**2,
            "DEC": 5 / 6**3,
            "SPC": (2 + 3 + 3 + 3 + 3) / 1000 / 6,  # one set of attributes each, and 1 2 2 2 2 input shapes
            "NOO": (6 + 4) / 2,
            "NOT": (4 + 3) / 2,
            "NOP": (6 + 3) / 2,
            "NTR": (5 + 2) / 2,
            "NSA": (3 + 4 + 3 + 3) / 2,
        }
    )


def test_all_eleven_as_the_release_counts() -> None:
    tally, _ = build_tally(SIX, first_model(), second_model())
    assert values(tally, "released") == pytest.approx(
        {
            "OTC": 5 / 6,
            "IDC": 3.7 / 6,
            "ODC": (2 + 2 + 1 + 1 + 1) / 6,  # the Flatten behind q makes the first Split's 1 a 2
            "SEC": 7 / 6**2,
            "DEC": 5 / 6**3,
            "SPC": (2 + 3 + 3 + 3 + 3) / 6,
            "NOO": 5,
            "NOT": 3.5,
            "NOP": (4 + 3) / 2,
            "NTR": (3 + 2) / 2,
            "NSA": (3 + 4 + 3 + 1) / 2,  # attributes that the first model showed do not count again
        }
    )


def test_all_six_of_graph_fuzzing() -> None:
    tally, _ = build_tally(SIX, first_model(), second_model())
    shares = {
        "OTC": 5 / 6,
        "IDC": 3.7 / 6,
        "ODC": (2 + 3 + 1 + 1 + 2) / 6 / 6,  # Relu 1 3, Add 0 1 2, Concat 1, Abs 0, Split 1 2; of 0 to 5
        "SEC": 7 / 6**2,
        "SPC": (1 + 2 + 1 + 2 + 2) / 200 / 6,  # Relu (2,3), Add (2,3) (1,3), Concat, Abs (5,3) (2,3), Split
    }
    expected = shares | {"OLC": sum(shares.values()) / 5}
    assert values(tally, "graph_fuzzing") == pytest.approx(expected)
    relu = {"OTC": 1, "IDC": 1, "ODC": 2 / 6, "SEC": 2 / 6, "SPC": 1 / 200, "OLC": (2 + 4 / 6 + 1 / 200) / 5}
    assert operator_levels(tally)["Relu"] == pytest.approx(relu)


def test_an_operators_row() -> None:
    tally, _ = build_tally(SIX, first_model(), second_model())
    split = observe_operators(tally)["Split"]
    assert (split.nodes, split.in_degrees, split.successors, split.double) == (2, 1, 2, 1)
    assert (split.out_degrees, split.out_degrees_released) == (2, 1)
    assert (split.attributes, split.shapes) == (1, 2)
    assert observe_operators(tally)["Flatten"].nodes == 0


def test_nothing_measured_is_zero_everywhere() -> None:
    for reading, count in (("paper", 11), ("released", 11), ("graph_fuzzing", 6)):
        found = values(Tally(SIX), reading)
        assert len(found) == count
        assert set(found.values()) == {0.0}


#: What Isra's generator never makes of its own table: Concat and the like of one input, Conv and Gemm of
#: three, Pad but of two, Slice but of five, ReduceSum but of two, Resize but of three.
NEVER = {
    **{name: {1} for name in ("Concat", "Max", "Mean", "Min", "Sum")},
    **{name: {3} for name in ("Conv", "Gemm")},
    "Pad": {3, 4},
    "Slice": {3, 4},
    "ReduceSum": {1},
    "Resize": {1, 2, 4},
}


def test_the_ceiling_of_idc_is_the_one_isra_reports() -> None:
    """92.95 % (paper, table of operation-level metrics): 1 - 4.5833/65."""
    isra = operators.get("isra")
    nodes = [
        helper.make_node(name, [f"x{at}" for at in range(degree)], [f"{name}{degree}"])
        for name, degrees in isra.in_degrees.items()
        for degree in degrees - NEVER.get(name, set())
    ]
    tally = Tally(isra)
    tally.add(extract_scopes(ModelProto(graph=helper.make_graph(nodes, "g", [], []))))
    missing = sum(len(NEVER[name]) / len(isra.in_degrees[name]) for name in NEVER)
    assert missing == pytest.approx(4.5833, abs=1e-4)
    assert values(tally, "paper")["IDC"] == pytest.approx(1 - missing / 65)
    assert round(100 * values(tally, "released")["IDC"], 2) == 92.95


def test_out_degrees_stop_at_twelve_and_in_degrees_at_five() -> None:
    many = [helper.make_node("Relu", ["a"], [f"r{at}"]) for at in range(14)]
    total = helper.make_node("Sum", [f"r{at}" for at in range(14)], ["s"])
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["a"]), *many, total], "g", [], [])
    tally = Tally(
        OperatorSet(
            "three", {name: frozenset(range(1, n)) for name, n in [("Abs", 2), ("Relu", 2), ("Sum", 6)]}
        )
    )
    tally.add(extract_scopes(ModelProto(graph=graph)))
    assert tally.observations.out_degrees == {("Abs", 14), ("Relu", 1), ("Sum", 0)}
    rows = observe_operators(tally)
    assert {name: row.out_degrees for name, row in rows.items()} == {"Abs": 1, "Relu": 1, "Sum": 1}
    assert {name: row.out_degrees_to_five for name, row in rows.items()} == {"Abs": 0, "Relu": 1, "Sum": 1}
    assert tally.observations.in_degrees == {("Abs", 1), ("Relu", 1), ("Sum", 5)}


def test_spc_of_the_paper_does_not_exceed_one() -> None:
    tally = Tally(UNARY)
    shapes = [(a, b) for a in range(1, 41) for b in range(1, 31)]
    tally.observations.inputs.update(("Relu", shape) for shape in shapes)
    assert len(shapes) > MAX_SPC
    assert values(tally, "paper")["SPC"] == 1 / 2
    assert values(tally, "released")["SPC"] == len(shapes) / 2


def test_operators_outside_the_set_neither_count_nor_connect() -> None:
    model = model_of("g (float[3] x) => (float[3] z) { a = Relu(x) b = Neg(a) c = Abs(b) z = Abs(a) }")
    tally, [figures] = build_tally(UNARY, model)
    assert (figures.nodes, figures.edges) == (3, 1)
    assert tally.observations.edges == {("Relu", "Abs"): 1}
    assert tally.observations.outside == {"Neg": 1}
    assert tally.observations.out_degrees == {("Relu", 1), ("Abs", 0)}  # Neg consumes a, too
    assert tally.nodes == 4


def test_closing_nodes_are_told_by_their_names_alone() -> None:
    text = "g (float[3] x) => (float[1,3] z) { a = Relu(x) z = Flatten<axis=0>(a) }"
    flat = OperatorSet("flat", {"Relu": frozenset({1}), "Flatten": frozenset({1})})
    for name, nodes, closing in (("flatten_a", 1, 1), ("Flatten_1", 2, 0), ("concat_outputs", 1, 1)):
        tally, [figures] = build_tally(flat, named(model_of(text), "r", name))
        assert (figures.nodes, tally.observations.closing) == (nodes, closing)
        assert tally.nodes == nodes
