"""What others wrote cannot steer a terminal."""

from __future__ import annotations

import os
import pty
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.panel import Panel
from rich.table import Table

from bot.bisection.commit_range import describe_commit
from bot.cli.common.console import stdout
from bot.commit_files import CommitMessage
from bot.terminal import echo, replace_controls

HOSTILE = "good\x1b]0;title\x07\x1b[2Jbad\x9b1m\r\u202eend"


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = replace_controls(text)
    assert not any((ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160 for char in shown)
    assert replace_controls(shown) == shown


def on_a_terminal(show: object) -> str:
    """What `show()` sends to a terminal."""
    pid, descriptor = pty.fork()
    if not pid:
        try:
            show()  # type: ignore[operator]
            sys.stdout.flush()
        finally:
            os._exit(0)
    read = b""
    try:
        while data := os.read(descriptor, 4096):
            read += data
    except OSError:  # the other end is closed
        pass
    os.close(descriptor)
    os.waitpid(pid, 0)
    return read.decode()


@pytest.mark.parametrize("kind", ["text", "table", "panel", "echo"])
def test_a_terminal_gets_no_controls_of_others(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    def show() -> None:
        sys.stdout = os.fdopen(1, "w")
        if kind == "echo":
            return echo(HOSTILE)
        table = Table("column")
        table.add_row(HOSTILE)
        return stdout().print({"text": f"[bold]{HOSTILE}[/]", "table": table, "panel": Panel(HOSTILE)}[kind])

    shown = on_a_terminal(show)
    assert "good" in shown
    assert "end" in shown
    for control in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x07"):
        assert control not in shown
    assert "\x1b[1m" in shown or kind != "text", "what is ours keeps its style"


def test_a_file_gets_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\rb\u202ec")
    assert capsys.readouterr().out == "a\rb\u202ec\n"


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Fix Pow (#20053)", 20053),
        ("Merge pull request #7 from a/b", 7),
        ("Fix #3", 0),
        (f"Fix (#{'9' * 5000})", 0),
        (f"Merge pull request #{'9' * 5000}", 0),
        ("", 0),
    ],
)
def test_any_subject_of_a_commit_is_described(subject: str, number: int) -> None:
    assert describe_commit(CommitMessage("0" * 40, "ada", subject))["pull_request"] == number
