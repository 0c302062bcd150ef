"""The time that sweeps of planted regressions spend on making cases."""

from __future__ import annotations

from itertools import count

import pytest

from tests.sweeps import _planted


def test_no_further_case_is_made_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of endless cases ends, each of which takes three seconds."""
    seconds = count(step=3)
    monkeypatch.setattr(_planted, "processor_time", lambda: float(next(seconds)))
    assert list(_planted.migrate_within(10.0, count())) == [0, 1, 2, 3]
