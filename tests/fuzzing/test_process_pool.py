"""Work that several processes share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.process_pool import map_in_processes


def negated(number: int) -> int:
    if number == 3:
        raise UsageError("three")
    return -number


def dies(number: int) -> int:
    if number == 1:
        os._exit(1)
    return os.getpid()


def test_alone_nothing_is_taken_before_it_is_asked_for() -> None:
    taken = []

    def work() -> Iterator[int]:
        for number in range(3):
            taken.append(number)
            yield number

    found = map_in_processes(negated, work(), 1, "")
    assert (next(found), taken) == (0, [0])


def test_many_pieces_come_in_their_order_and_few_are_held() -> None:
    taken = []

    def work() -> Iterator[int]:
        for number in range(10, 40):
            taken.append(number)
            yield number

    found = map_in_processes(negated, work(), 2, "")
    assert (next(found), len(taken)) == (-10, 5)
    assert list(found) == [-number for number in range(11, 40)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_work_raises_is_raised_here(jobs: int) -> None:
    with pytest.raises(UsageError, match="three"):
        list(map_in_processes(negated, range(5), jobs, ""))


def test_the_death_of_a_process_is_told_with_the_advice() -> None:
    with pytest.raises(InfrastructureError, match="eat less"):
        list(map_in_processes(dies, range(4), 2, "eat less"))
