"""Limits: what a case may use."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from fuzzing.errors import UsageError
from fuzzing.execute.limits import Limits
from fuzzing.outcomes import Phase

NAMES = [item.name for item in fields(Limits)]


def test_every_phase_has_its_time() -> None:
    limits = Limits(import_s=1, convert_s=2, compile_s=3, run_s=4)
    assert [limits.seconds(phase) for phase in Phase] == [1, 2, 3, 4]


def test_times_of_a_case_are_multiplied_and_nothing_else() -> None:
    limits = Limits(import_s=1, convert_s=2, compile_s=4, run_s=6)
    assert limits.with_times(0.5) == replace(limits, convert_s=1, compile_s=2, run_s=3)


def test_json_and_back() -> None:
    limits = Limits(run_s=0.5, memory_bytes=1 << 20)
    assert Limits.from_json(limits.to_json()) == limits
    assert Limits.from_json({}) == Limits()
    assert Limits.from_json({"run_s": 1}) == replace(Limits(), run_s=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, "1", None, True, float("nan")])
def test_a_limit_is_a_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        Limits.from_json({name: value})


@pytest.mark.parametrize("obj", [{"cpu_s": 1}, None, 3])
def test_unknown_limits_are_mistakes(obj: Any) -> None:
    with pytest.raises(UsageError, match="unknown limit"):
        Limits.from_json(obj)
