"""Operators that share a helper of the compiler are one bug where both need what the helper is for."""

from __future__ import annotations

import pytest

from fuzzing.triage.signature import Signature, compute_signature, explains
from fuzzing.triage.traits import Traits
from tests.fuzzing.triage.outcomes_kit import wrong_result


def signed(operator: str, kind: str, *needs: str, proven: tuple[str, ...] = ()) -> Signature:
    """Of a reduced model of one operator with a wrong output."""
    traits = Traits(operator, ("float",), tuple(sorted(needs)), (operator,), proven=proven)
    return compute_signature(wrong_result(kind), "", reduced=traits)


@pytest.mark.parametrize(
    ("kind", "first", "second", "need"),
    [
        ("value", "GRU", "LSTM", "{}.layout"),  # OpenVINO ignores it in all three
        ("shape", "RNN", "GRU", "{}.layout"),
        ("value", "ReduceMax", "ReduceProd", "zero-size"),  # TVM's memory of nothing
        ("shape", "ReduceL1", "ReduceLogSum", "{}.axes"),  # OpenVINO before opset 18
    ],
)
def test_what_a_family_shares_is_one_bug(kind: str, first: str, second: str, need: str) -> None:
    one, other = (signed(name, kind, need.format(name), "rank 1") for name in (first, second))
    assert explains(one, other)
    assert explains(other, one)
    assert one.key != other.key, "a key names its operator, as before"
    more = need.format(second), f"{second}.hidden_size", "rank 1"
    assert explains(one, signed(second, kind, *more))
    assert not explains(one, signed(second, kind, *more, proven=(f"{second}.hidden_size",)))


@pytest.mark.parametrize(
    ("kind", "first", "second", "need"),
    [
        ("value", "GRU", "LSTM", "rank 1"),
        ("value", "GRU", "LSTM", "{}.initial_h"),
        ("value", "ReduceL1", "ReduceLogSum", "{}.axes"),
        ("value", "ReduceL1", "ReduceLogSum", "{}.noop_with_empty_axes"),
        ("shape", "Conv", "ConvTranspose", "{}.pads"),
    ],
)
def test_what_an_operator_does_itself_is_a_bug_of_each(kind: str, first: str, second: str, need: str) -> None:
    one, other = (signed(name, kind, need.format(name)) for name in (first, second))
    assert not explains(one, other)
    assert not explains(other, one)


def test_another_need_of_the_family_is_another_bug() -> None:
    one = signed("ReduceL1", "shape", "ReduceL1.axes", "rank 1")
    assert not explains(one, signed("ReduceMax", "shape", "zero-size", "rank 1"))
