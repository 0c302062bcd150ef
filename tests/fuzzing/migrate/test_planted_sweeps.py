"""The cases of sweeps of planted regressions: the time to make them, and their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

import pytest

from fuzzing.cases import Tensor, TestCase
from fuzzing.smoke_test import smoke_case
from tests.sweeps import _planted


def test_no_further_case_is_made_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of endless cases ends, each of which takes three seconds."""
    seconds = count(step=3)
    monkeypatch.setattr(_planted, "processor_time", lambda: float(next(seconds)))
    assert list(_planted.migrate_within(10.0, count())) == [0, 1, 2, 3]


class Target:
    """One that is right where it is given tensors."""

    def expected(self, case: TestCase) -> list[Any]:
        return []

    def is_right(self, case: TestCase, expected: Sequence[Any]) -> bool:
        return all(isinstance(value, Tensor) for _, value in case.inputs)

    def reached(self, case: TestCase, expected: Sequence[Any]) -> tuple[bool, set[str]]:
        return self.is_right(case, expected), set()

    def planted(self, plant: str) -> AbstractContextManager[None]:
        return nullcontext()


def test_inputs_that_are_recipes_are_drawn() -> None:
    """Generated cases have them; a compiler takes tensors, and none of them counted."""
    assert _planted.search(Target, [smoke_case("OnnxModel")], 60.0).right == 1
