"""Which processors a worker may use."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.execute.sandbox.isolation import LANDLOCK
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute.probe_runner import answer, command, source

ALL = os.sched_getaffinity(0)


def where(given: dict[str, Any]) -> object:
    import os
    import time

    time.sleep(0.05)
    return [os.getpid(), *sorted(os.sched_getaffinity(0))]


def used(workers: int) -> dict[int, set[int]]:
    """The processors of each worker that answered, until all have."""
    supervisor: Supervisor[int] = Supervisor(
        command(isolation=LANDLOCK), workers=workers
    )  # numbers as outside
    case = TestCase(OnnxModel(source(where).encode()), (), Provenance("tests", "where", "", "", ""))
    found: dict[int, set[int]] = {}

    def cases() -> Any:
        drawn = 0
        while len(found) < workers:
            yield drawn, case
            drawn += 1

    for _, execution in supervisor.run(cases()):
        process, *cores = (int(text) for text in answer(execution).strip("[]").split(","))
        found[process] = set(cores)
    return found


def test_one_worker_may_use_all() -> None:
    assert list(used(1).values()) == [ALL]


@pytest.mark.skipif(len(ALL) < 2, reason="needs two processors")
def test_two_workers_share_them_without_overlap() -> None:
    first, second = used(2).values()
    assert not first & second
    assert first | second == ALL


def test_more_workers_than_processors_share_them_all() -> None:
    if len(ALL) > 4:
        pytest.skip("too many processors to outnumber them")
    assert all(cores == ALL for cores in used(len(ALL) + 1).values())
