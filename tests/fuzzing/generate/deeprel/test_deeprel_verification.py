"""What one call says of a pair."""

from __future__ import annotations

import numpy as np
import pytest

from fuzzing.cases import Tensor
from fuzzing.execution import Execution
from fuzzing.generate.deeprel.verification import (
    Equivalence,
    Outcome,
    compare_executions,
    outputs_equal,
    values_close,
)
from fuzzing.outcomes import Phase
from tests.fuzzing.generate.deeprel.deeprel_helpers import killed, raised, returned

NAN = float("nan")
EXCUSED = raised("\"amin_cpu\" not implemented for 'ComplexFloat'")


@pytest.mark.parametrize(
    ("source", "target", "value", "status"),
    [
        (returned([1.0]), returned([1.0]), Outcome.SUCCESS, Outcome.SUCCESS),
        (returned([1.0]), returned([2.0]), Outcome.NOT_EQUIVALENT, Outcome.SUCCESS),
        (returned([1.0]), raised("no"), Outcome.NOT_EQUIVALENT, Outcome.NOT_EQUIVALENT),
        (returned([1.0]), EXCUSED, Outcome.NOT_EQUIVALENT, Outcome.FAIL),
        (raised("no"), raised("no"), Outcome.FAIL, Outcome.FAIL),
        (raised("no"), returned([1.0]), Outcome.FAIL, Outcome.FAIL),
        (returned([1.0]), killed(), Outcome.BUG, Outcome.BUG),
        (returned([1.0]), raised("x INTERNAL ASSERT FAILED at y.cpp"), Outcome.BUG, Outcome.BUG),
        (returned([1.0]), raised("an output", "Unsupported"), Outcome.ERROR, Outcome.ERROR),
        (returned([1.0]), Execution("hung", Phase.RUN), Outcome.ERROR, Outcome.ERROR),
        (returned(), returned(), Outcome.ERROR, Outcome.ERROR),
    ],
)
def test_outcomes(source: Execution, target: Execution, value: Outcome, status: Outcome) -> None:
    expected: dict[Equivalence, Outcome] = {"value": value, "status": status}
    assert {name: compare_executions(source, target, name) for name in expected} == expected


def test_a_mutated_call_may_be_refused_for_its_type_whatever_the_equivalence() -> None:
    assert compare_executions(returned([1.0]), EXCUSED, "value", mutated=True) is Outcome.FAIL
    assert compare_executions(returned([1.0]), raised("no"), "value", mutated=True) is Outcome.NOT_EQUIVALENT


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1.0, NAN], [1.0 + 5e-6, NAN], True),
        ([1.0], [1.001], False),
        ([1], [1.0], False),  # another type
        ([1.0], [[1.0]], False),  # another shape
        ([1 + 2j], [1 + 2j + 1e-7], True),
        ([True], [False], False),
        ([NAN], [0.0], False),
        (np.zeros((0, 2)), np.ones((0, 2)), True),
    ],
)
def test_values_are_alike_within_the_tolerance(one: object, other: object, same: bool) -> None:
    assert values_close(Tensor.of(np.asarray(one)), Tensor.of(np.asarray(other))) is same


def test_small_floats_are_compared_as_numbers_not_as_codes() -> None:
    zeros = Tensor("bfloat16", (2,), b"\x00\x00\x00\x80"), Tensor("bfloat16", (2,), b"\x00\x80\x00\x00")
    assert values_close(*zeros)
    assert not values_close(zeros[0], Tensor("bfloat16", (2,), b"\x00\x00\x80\x3f"))


def test_one_output_equals_several_if_it_equals_any_of_them() -> None:
    values, indices = [3.0, 4.0], [0, 1]
    assert outputs_equal(returned(values).outputs, returned(values, indices).outputs)
    assert outputs_equal(returned(values, indices).outputs, returned(values).outputs)
    assert not outputs_equal(returned([0.0]).outputs, returned(values, indices).outputs)
    assert not outputs_equal(returned(values, indices).outputs, returned(values, indices, indices).outputs)
