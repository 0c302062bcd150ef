"""Exit codes and what errors say."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bot import errors
from bot.cli.exits import exit_code, run_and_exit
from fuzzing.errors import CaseFormatError


def failing(error: BaseException) -> click.Command:
    @click.command()
    @click.option("--json", is_flag=True, expose_value=False)
    def fail() -> None:
        raise error

    return fail


def run(command: click.Command, *argv: str) -> int:
    with pytest.raises(SystemExit) as left:
        run_and_exit(command, argv)
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("u"), 2),
        (errors.SettingsError("s"), 2),
        (errors.ConfigError("c", key="budget", line=3), 2),
        (CaseFormatError("f"), 2),
        (errors.RefusalError("r"), 3),
        (errors.ProvisionError("p"), 3),
        (errors.ToolchainError("t"), 3),
        (click.BadParameter("b"), 2),
    ],
)
def test_errors_have_codes(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(failing(error)) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    first, *rest = shown.err.splitlines()
    assert first.startswith("assay: ")
    assert rest[-1].startswith("  next: ")


def test_every_error_has_a_code_or_is_our_bug() -> None:
    def tree(base: type[Exception]) -> list[type[Exception]]:
        return [each for sub in base.__subclasses__() for each in (sub, *tree(sub))]

    for kind in tree(errors.AssayError):
        assert (exit_code(kind.__new__(kind)) is None) == issubclass(kind, errors.InternalError), kind


@pytest.mark.parametrize("error", [ZeroDivisionError(), errors.InternalError("i")])
def test_our_bugs_escape(error: Exception) -> None:
    with pytest.raises(type(error)):
        run_and_exit(failing(error), [])


def caused() -> errors.InfrastructureError:
    error = errors.InfrastructureError("cannot make the folder")
    error.__cause__ = OSError(28, "No space left on device")
    error.add_note("free some space on the disk")
    return error


def test_what_why_and_what_next(capsys: pytest.CaptureFixture[str]) -> None:
    run(failing(caused()))
    assert capsys.readouterr().err == (
        "assay: cannot make the folder\n"
        "  why: [Errno 28] No space left on device\n"
        "  next: free some space on the disk\n"
    )


def test_a_cause_is_told_as_far_as_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.InfrastructureError("the database is full")
    error.__cause__ = ValueError("INSERT " + "?, " * 10_000)
    run(failing(error))
    [_, why, _] = capsys.readouterr().err.splitlines()
    assert why.startswith("  why: INSERT ?, ")
    assert len(why) < 1100


def test_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(failing(caused()), "--json") == 3
    shown = capsys.readouterr()
    assert shown.err.startswith("assay: cannot make the folder\n"), "people read it on stderr"
    assert json.loads(shown.out) == {
        "error": {
            "kind": "InfrastructureError",
            "code": 3,
            "what": "cannot make the folder",
            "why": "[Errno 28] No space left on device",
            "next": "free some space on the disk",
        }
    }


def test_a_command_may_return_its_code() -> None:
    @click.command()
    def found() -> int:
        return 1

    @click.command()
    @click.pass_context
    def left(context: click.Context) -> None:
        context.exit(1)

    @click.command()
    def fine() -> None:
        pass

    assert (run(found), run(left), run(fine)) == (1, 1, 0)


def piped(script: str, into: str) -> subprocess.CompletedProcess[str]:
    """What a shell's pipe makes of a program of ours: its status is the last line."""
    line = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} {into}; echo ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600, check=True)


SAYS = """
import click
from bot.cli.common.console import stderr, stdout
from bot.cli.exits import Exit, run_and_exit
@click.command()
@click.option("--json", is_flag=True)
def command(json):
    for number in range(2_000):
        {say}
    return Exit.FOUND
run_and_exit(command, [])
"""


@pytest.mark.parametrize("say", ['stdout().print(f"{number:079}")', 'stderr().print(f"{number:079}")'])
def test_a_reader_who_has_enough_does_not_change_what_was_found(say: str) -> None:
    done = piped(SAYS.format(say=say), "2>&1 | head -1")
    assert (done.stdout.split(), done.stderr) == (["0" * 79, "1"], "")


def test_a_reader_who_has_enough_of_what_is_written_at_once() -> None:
    done = piped(SAYS.format(say='click.echo(f"{number:079}")'), "| head -1")
    assert (done.stdout.split(), done.stderr) == (["0" * 79, "0"], "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("say", ['stdout().print(f"{number:079}")', 'click.echo(f"{number:079}")'])
def test_a_full_disk_is_the_machines_trouble(say: str) -> None:
    done = piped(SAYS.format(say=say), "> /dev/full")
    assert done.stdout == "3\n"
    assert done.stderr.startswith("assay: cannot write: the disk is full\n")
    assert "Traceback" not in done.stderr


def test_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(failing(KeyboardInterrupt())) == 130
    assert "interrupted" in capsys.readouterr().err
