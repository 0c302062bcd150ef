"""Which worker gets the next cases: whoever has least ahead, so that the last ones are shared out."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.execute.supervisor import BATCH_CASES, Supervisor, _QueuedCase, _Slot
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import WorkerProcess

CASE = TestCase(OnnxModel(b""), (), Provenance("test", "t", "Relu", "onnx", "1", 0))


class Pipe:
    """A worker that takes everything and answers nothing."""

    unsent, write_fd = 0, 999

    def queue(self, *_: Any) -> None:
        """Takes a case."""

    def flush(self) -> None:
        """Has nothing to write."""


def slot(seconds: float) -> _Slot[int]:
    """A place whose worker takes so long for a case, and so may have many ahead."""
    made: _Slot[int] = _Slot(cast("WorkerProcess", Pipe()))
    made.prefetch.record(seconds)
    return made


@pytest.mark.parametrize("count", [60, 300])
def test_cases_go_to_whoever_has_least_ahead(count: int) -> None:
    supervisor: Supervisor[int] = Supervisor(WorkerCommand(sys.executable, "onnxruntime"), workers=2)
    full, empty = supervisor._slots = [slot(1e-4), slot(1e-4)]
    for number in range(100):
        supervisor._assign(full, _QueuedCase(number, CASE))
    assert supervisor._feed((number, CASE) for number in range(count))
    assert len(full.waiting) + len(empty.waiting) == 100 + count
    if count < 100:
        assert len(full.waiting) == 100
    else:
        assert abs(len(full.waiting) - len(empty.waiting)) <= BATCH_CASES


def test_a_slow_worker_gets_fewer() -> None:
    supervisor: Supervisor[int] = Supervisor(WorkerCommand(sys.executable, "onnxruntime"), workers=2)
    slow, fast = supervisor._slots = [slot(3e-4), slot(1e-4)]
    supervisor._feed((number, CASE) for number in range(400))
    assert len(fast.waiting) > 2 * len(slow.waiting) > 0
