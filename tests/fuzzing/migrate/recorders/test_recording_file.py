"""What a recorded process writes, and what is read of it, whole or cut off."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.cases import Absent, OnnxModel, Provenance, Sequence, Tensor, TestCase, Tolerance
from fuzzing.migrate.recorders import recording_file
from fuzzing.migrate.recorders.base import instance_key
from fuzzing.migrate.recorders.recording_file import FileSink, FrameSink
from tests.fuzzing.migrate.recorders.samples import call_case

#: With a recipe and nothing else; with values, expected outputs and a tolerance.
CASES = [
    call_case("torch.sin", (2,)),
    TestCase(
        OnnxModel(b"any bytes"),
        (("x", Tensor.of(np.arange(3.0))), ("y", Sequence((Tensor.of(np.array(["a"])),))), ("z", Absent())),
        Provenance("collected", "another test", "Add", "onnx", "1", 7),
        expected=(("0", Tensor.of(np.float32(1))),),
        tolerance=Tolerance(0.5, 0.25),
        comparison="shapes",
    ),
]


def written(sink: FrameSink) -> None:
    sink.case(CASES[0])
    sink.skip("torch.apply_", "a reason", "x" * 1000)
    sink.skip("torch.apply_", "a reason", "told once")
    sink.mark("here")
    try:
        raise RuntimeError("oh")
    except RuntimeError:
        sink.bug("torch.add")
    sink.spent(1.5)
    sink.case(CASES[1])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("record")
    written(FileSink(folder, "torch"))
    [path] = folder.glob(f"*{recording_file.SUFFIX}")
    return path.read_bytes()


def items(data: bytes) -> list[recording_file.Item]:
    return [item for item in recording_file.decode([data]) if not isinstance(item, recording_file.TimeSpent)]


def test_what_is_written_is_read(data: bytes) -> None:
    began, first, skipped, mark, bug, second = items(data)
    assert isinstance(began, recording_file.ProcessStarted)
    assert [first, second] == CASES
    assert isinstance(skipped, recording_file.SkippedCall)
    assert (skipped.api, skipped.reason, skipped.detail) == ("torch.apply_", "a reason", "x" * 300)
    assert mark == recording_file.Mark("here")
    assert isinstance(bug, recording_file.RecorderError)
    assert bug.api == "torch.add"
    assert "RuntimeError: oh" in bug.traceback


def test_the_time_spent_adds_up(data: bytes) -> None:
    seconds = [
        item.seconds for item in recording_file.decode([data]) if isinstance(item, recording_file.TimeSpent)
    ]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 1.5


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0), step=st.integers(1, 4096))
def test_a_process_may_die_anywhere(cut: int, step: int, data: bytes) -> None:
    """Whatever is there of a file gives the items before the cut, however it is read."""
    there = data[: cut % (len(data) + 1)]
    chunks = [there[begin : begin + step] for begin in range(0, len(there), step)]
    found = [item for item in recording_file.decode(chunks) if not isinstance(item, recording_file.TimeSpent)]
    assert found == items(data)[: len(found)]
    if len(there) == len(data):
        assert len(found) == 6


def test_a_forked_child_has_a_file_of_its_own(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "torch")
    sink.case(CASES[0])
    child = os.fork()
    if child == 0:
        sink.case(CASES[1])
        os._exit(0)
    os.waitpid(child, 0)
    files = [list(recording_file.read(path)) for path in tmp_path.glob(f"*{recording_file.SUFFIX}")]
    kept = [[item for item in read if isinstance(item, TestCase)] for read in files]
    assert sorted(kept, key=lambda cases: cases[0].provenance.test) == [[CASES[0]], [CASES[1]]]


def test_keys_are_new_until_they_are_known() -> None:
    sink = FrameSink(-1, "torch")
    assert [sink.new(1), sink.new(1), sink.new(2)] == [True, False, True]
    sink.forget(1)
    assert sink.new(1)


def test_the_test_is_pytests_or_the_function_that_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FrameSink(-1, "torch")
    assert sink.test() == "tests/fuzzing/migrate/recorders/test_recording_file.py::" + (
        "test_the_test_is_pytests_or_the_function_that_calls"
    )
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.chdir(Path(__file__).parent)
    assert sink.test().startswith(
        "test_recording_file.py:test_the_test_is_pytests_or_the_function_that_calls:"
    )


def test_an_instance_is_the_program_with_types_and_shapes() -> None:
    one, other = call_case("torch.sin", (2,)), call_case("torch.sin", (2,), "other")
    assert instance_key(one) == instance_key(other)
    assert len({instance_key(case) for case in (*CASES, one, call_case("torch.sin", (3,)))}) == 3
