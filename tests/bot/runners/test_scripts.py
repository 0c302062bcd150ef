"""Reproducers are tried under an interpreter, in a process that is shut in."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from bot.errors import RunnerError
from bot.runners.reproducer_run import BUG_SHOWN, NOT_RUN, Ending, try_script

#: Starts itself again, as reproducers do, and tells what it could do by its exit code.
TEMPLATE = """
import os, socket, subprocess, sys
if sys.argv[1:] != ["--child"]:
    print("THE BUG SHOWS", flush=True)
    sys.exit(subprocess.call([sys.executable, os.path.abspath(__file__), "--child"]))
{body}
"""


def tried(body: str) -> int:
    return try_script(TEMPLATE.format(body=body), sys.executable)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_its_exit_code_is_told(code: int) -> None:
    assert tried(f"sys.exit({code})") == code


def test_it_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "hidden")
    assert tried("sys.exit(7 if 'ASSAY_WEBHOOK_SECRET' in os.environ else 1)") == 1


def test_it_writes_in_a_folder_of_its_own_and_nowhere_else(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    body = f"""
open("mine", "w").close()
open(os.path.join(os.environ["TMPDIR"], "mine too"), "w").close()
try:
    open({os.fspath(victim)!r}, "w").close()
except OSError:
    sys.exit(1)
sys.exit(7)
"""
    assert tried(body) == 1
    assert not victim.exists()


def test_it_reaches_no_network() -> None:
    body = """
try:
    socket.create_connection(("127.0.0.1", 9), 1)
except ConnectionRefusedError:
    sys.exit(7)
except OSError:
    sys.exit(1)
"""
    assert tried(body) == 1


def test_an_interpreter_that_is_not_there_has_not_shown_the_bug(tmp_path: Path) -> None:
    assert try_script("", str(tmp_path / "python")) == NOT_RUN


def test_a_script_with_a_mistake_in_it_has_not_shown_the_bug() -> None:
    assert try_script("no python", sys.executable) == NOT_RUN


def test_what_cannot_be_started_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("bot.processes.run", refuse)
    with pytest.raises(RunnerError, match="Cannot allocate memory"):
        tried("")


def test_a_short_script_reads_our_onnx_where_its_toolchain_has_none(tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    script = "import typing_extensions, google.protobuf\nraise RuntimeError('as the bug does')\n"
    assert try_script(script, str(tmp_path / "empty/bin/python"), Ending("RuntimeError")) == 1


WRONG = Ending("AssertionError", assertion=True)
SHORT = """
def convert(x):
    {fault}
    return x
try:
    raise AssertionError("on the way")
except AssertionError:
    got = convert(3)
assert (got
        == 4), got
"""


@pytest.mark.parametrize(
    ("script", "ending", "code"),
    [
        (
            "raise ValueError('Split: 3 outputs of axis 7')",
            Ending("ValueError", ("Split", "axis")),
            BUG_SHOWN,
        ),
        ("raise ValueError('axis: Split')", Ending("ValueError", ("Split", "axis")), NOT_RUN),
        ("raise ValueError('No module named onnx')", Ending("ValueError", ("Split", "axis")), NOT_RUN),
        ("raise TypeError('Split: axis')", Ending("ValueError", ("Split", "axis")), NOT_RUN),
        (SHORT.format(fault="pass"), WRONG, BUG_SHOWN),
        (SHORT.format(fault="assert x == 4, 'a check of the compiler'"), WRONG, NOT_RUN),
        (SHORT.format(fault="return 4"), WRONG, NOT_RUN),
        ("import os; os.abort()", Ending("SIGABRT"), BUG_SHOWN),
        ("import os; os.abort()", Ending("SIGSEGV"), NOT_RUN),
    ],
)
def test_a_short_script_shows_its_own_bug_alone(script: str, ending: Ending, code: int) -> None:
    assert try_script(script, sys.executable, ending) == code
