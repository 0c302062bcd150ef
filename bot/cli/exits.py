"""How `assay` ends: exit codes for both error trees, and errors that say what, why and what next.

0  all is well
1  something was found: a regression, a case that fails, nothing to test with
2  wrong usage or settings
3  the machine or a platform failed; nothing is said about a compiler

With --json, what goes wrong is one JSON object on stdout, where the result would be, and told on stderr.

An exception in neither tree, or an InternalError, is a bug of ours: it escapes with its traceback.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

import click

import bot.errors
import fuzzing.errors

REPORT_BUGS = "this is a bug of Assay; please report it with the lines above"


class Exit(IntEnum):
    """The exit codes."""

    OK = 0
    FOUND = 1
    USAGE = 2
    INFRASTRUCTURE = 3


#: Ended by Ctrl-C: 128 + SIGINT, as shells have it.
INTERRUPTED = 130

_MAX_WHY = 1000  # characters
#: Where a disk, or a user's share of it, is full.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

_USAGE = (bot.errors.UsageError, fuzzing.errors.UsageError)
_REFUSAL = (bot.errors.RefusalError, fuzzing.errors.RefusalError)
_INFRASTRUCTURE = (bot.errors.InfrastructureError, fuzzing.errors.InfrastructureError)
_EXPECTED = (*_USAGE, *_REFUSAL, *_INFRASTRUCTURE)


def exit_code(error: BaseException) -> Exit | None:
    """The exit code an error stands for; None for our own bugs."""
    if isinstance(error, (*_USAGE, click.ClickException)):
        return Exit.USAGE
    if isinstance(error, (*_INFRASTRUCTURE, *_REFUSAL)):
        return Exit.INFRASTRUCTURE
    return None


def run_and_exit(command: click.Command, argv: Sequence[str]) -> NoReturn:
    """Runs a command and leaves the process. A command may return its exit code; None is 0."""
    stdout = sys.stdout
    try:
        code = _run(command, argv)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # Whoever read our output has enough (`assay … | head`); nothing more must be written to it. Click
        # puts another stdout there, and would end with 1: to say that something was found.
        if isinstance(error, SystemExit) and sys.stdout is stdout:
            raise
        _discard_stdout()
        code = Exit.OK
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        _discard_stdout()
        click.echo("assay: nothing more can be written: the disk is full", err=True)
        click.echo("  next: free some space and run again; no compiler was judged", err=True)
        code = Exit.INFRASTRUCTURE
    sys.exit(code)


def _run(command: click.Command, argv: Sequence[str]) -> int:
    """Runs a command and tells what went wrong; the exit code."""
    as_json = "--json" in argv
    try:
        result = command.main(args=list(argv), prog_name="assay", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        return _report_error(error, as_json, what=error.format_message(), advice=_usage_advice(error))
    except _EXPECTED as error:
        return _report_error(error, as_json, what=str(error), advice=_advice(error))
    except (click.Abort, KeyboardInterrupt):
        click.echo("assay: interrupted", err=True)
        return INTERRUPTED
    return result if isinstance(result, int) else Exit.OK


def _discard_stdout() -> None:
    """What waits to be written to stdout, and all that follows, goes nowhere."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _report_error(error: Exception, as_json: bool, *, what: str, advice: str) -> Exit:
    """Says what happened, why and what to do next; the exit code."""
    code = exit_code(error)
    assert code is not None
    cause = error.__cause__
    why = _truncate(str(cause)) if cause is not None and str(cause) not in what else ""
    if as_json:
        details = {"kind": type(error).__name__, "code": int(code), "what": what, "why": why, "next": advice}
        click.echo(json.dumps({"error": details}))
    click.echo(f"assay: {what}", err=True)
    if why:
        click.echo(f"  why: {why}", err=True)
    click.echo(f"  next: {advice}", err=True)
    return code


def _truncate(text: str) -> str:
    """As much of a cause as helps: a database's is its statement, with the values of a hundred rows."""
    return text if len(text) <= _MAX_WHY else f"{text[:_MAX_WHY]} …"


def _advice(error: Exception) -> str:
    """What to do next: the error's own notes, else what helps with its kind."""
    notes = getattr(error, "__notes__", [])
    if notes:
        return " ".join(notes)
    if isinstance(error, bot.errors.SettingsError):
        return "mend the setting and start again; variables win over the file"
    if isinstance(error, _USAGE):
        return "mend what is named above and run the command again"
    if isinstance(error, _REFUSAL):
        return "lift the limit or the permission named above, or wait, then run the command again"
    return "mend what is named above and run again; no compiler was judged"


def _usage_advice(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "assay"
    return f"see `{path} --help`"
