from __future__ import annotations

import pytest

from fuzzing.graph import operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.operators.casting import converted
from fuzzing.graph.types import ANY
from tests.support.operators import check, check_torch, single

_FED = [dtype for dtype in ANY if dtype != "bfloat16"]


@pytest.mark.parametrize("name", ["Cast", "CastLike"])
def test_casts_between_all_types(name: str) -> None:
    ran = check(name, (15, 19, 24), _FED, seeds=6)
    assert {item.generated.graph.types[-1].dtype for item in ran} == set(ANY)
    check(name, (15, 24), ("bfloat16",), seeds=4, runs=False)
    # Those to bfloat16 are not run.
    assert check_torch(name, 18, ("float32", "float16", "int8", "int32", "bool"), seeds=10) > 35


def test_nothing_negative_becomes_unsigned() -> None:
    for seed in range(200):
        generated = single("Cast", seed)
        graph = generated.graph
        (source,) = graph.nodes[0].inputs
        assert source is not None
        if graph.types[-1].dtype.startswith("uint"):
            assert generated.ranges[source].low >= 0


def test_integers_drop_fractions_and_floats_round() -> None:
    assert converted(Interval(-1.7, 2.9), "int8") == Interval(-1, 2)
    assert converted(Interval(-1.7, 2.9), "bool") == Interval(0, 1)
    found = converted(Interval(16777215, 16777217), "float32")
    assert found.low <= 16777216 <= found.high
    assert found.high < 16778000


def test_the_casting_forms() -> None:
    check("Identity", (13, 19, 24), [*_FED], seeds=2)
    check("Identity", (18,), seeds=12, limits=GraphLimits(min_rank=0, min_dim=0))
    assert check_torch("Identity", 18, ("float32", "bool"), seeds=2) == 4
    assert "saturate" not in operators.get_specification("Cast", 18).defaults
    assert "saturate" in operators.get_specification("Cast", 19).defaults


def test_dropout_passes_its_input_on_with_all_its_optional_parts() -> None:
    ran = check("Dropout", (13, 22), ("float32", "float64"), seeds=25)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert {len(node.outputs) for node in nodes} == {1, 2}
    given = {tuple(edge is not None for edge in node.inputs) for node in nodes}
    assert given == {(True,), (True, True), (True, True, True), (True, False, True)}
    check("Dropout", (13, 22), ("float16", "bfloat16"), seeds=4, runs=False)
    assert check_torch("Dropout", 18, seeds=10) == 10
