"""How far ahead of a worker cases are sent."""

from __future__ import annotations

import pytest

from fuzzing.execute.prefetch import MAX_PREFETCH, PREFETCH_S, Prefetch


def paced(*seconds: float) -> Prefetch:
    prefetch = Prefetch()
    for one in seconds:
        prefetch.record(one)
    return prefetch


@pytest.mark.parametrize("seconds", [1.0, 20.0, 3600.0])
def test_a_slow_compiler_has_one_in_hand_and_one_ahead(seconds: float) -> None:
    assert paced(seconds, seconds).depth == 2


def test_a_fast_one_has_enough_for_as_long_as_we_look_away() -> None:
    prefetch = paced(0.001, 0.001)
    assert prefetch.depth == pytest.approx(PREFETCH_S / 0.001, abs=1)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 5e-5])
def test_there_is_a_most(seconds: float) -> None:
    assert paced(seconds).depth == MAX_PREFETCH


def test_a_slow_start_is_soon_forgotten() -> None:
    assert paced(10.0, *[0.0003] * 20).depth > 0.9 * min(MAX_PREFETCH, PREFETCH_S / 0.0003)


def test_nothing_known_is_a_handful() -> None:
    assert 2 <= Prefetch().depth <= 8
