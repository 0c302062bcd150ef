"""What programs of the data plane share."""

from __future__ import annotations

import json

import pytest

from fuzzing.entry_point import emit_event, run_main
from fuzzing.errors import AssayError, InternalError, ToolchainError, UnknownNameError


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [(UnknownNameError("no such backend"), "usage", 2), (ToolchainError("no such python"), "toolchain", 3)],
)
def test_what_could_not_be_done_is_an_event_a_note_and_an_exit_code(
    error: AssayError, kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        emit_event(event="start")
        raise error

    assert run_main("tried", work) == code
    reported = capsys.readouterr()
    assert [json.loads(line) for line in reported.out.splitlines()] == [
        {"event": "start"},
        {"event": "error", "kind": kind, "message": str(error)},
    ]
    assert reported.err == f"tried: {error}\n"
    assert run_main("tried", work, events=False) == code
    assert json.loads(capsys.readouterr().out) == {"event": "start"}


def test_what_was_done_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main("done", lambda: None) == 0
    assert capsys.readouterr() == ("", "")


def test_a_bug_of_ours_passes() -> None:
    def work() -> None:
        raise InternalError("ours")

    with pytest.raises(InternalError):
        run_main("broken", work)


def test_text_that_is_no_unicode_can_be_told(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    emit_event(message="half a pair: \ud800")
    assert json.loads(capsysbinary.readouterr().out) == {"message": "half a pair: \ud800"}
