"""Exit codes of `assay`, and its error messages: what happened, why, what to do next.

0  success
1  failure found: a regression, a case that fails, no compiler to test
2  wrong usage or settings
3  infrastructure failure: a machine or platform failed, which is no evidence about a compiler

With --json, errors are also printed to stdout as one JSON object in place of the result. An InternalError, or
an exception outside the tree of `fuzzing.errors`, is a bug of Assay and escapes with its traceback.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from bot.errors import EXPECTED_ERRORS, RefusalError, SettingsError, UsageError
from bot.terminal import echo
from fuzzing.errors import Exit as Exit
from fuzzing.errors import exit_code as error_exit_code

#: Exit code after Ctrl-C: 128 + SIGINT, as in shells.
INTERRUPTED = 130

_MAX_WHY = 1000  # characters
#: The disk or the user's quota is full.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def exit_code(error: BaseException) -> Exit | None:
    """The exit code of an error, click's included; None for bugs of Assay."""
    return Exit.USAGE if isinstance(error, click.ClickException) else error_exit_code(error)


def run_and_exit(command: click.Command, argv: Sequence[str]) -> NoReturn:
    """Runs a command and exits. A command may return its exit code; None is 0."""
    stdout = sys.stdout
    try:
        code = _run(command, argv)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # The reader closed the pipe (`assay … | head`). Click replaces stdout then and exits with 1, which
        # would mean that a failure was found.
        if isinstance(error, SystemExit) and sys.stdout is stdout:
            raise
        _discard_stdout()
        code = Exit.OK
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        _discard_stdout()
        echo("assay: cannot write: the disk is full", err=True)
        echo("  next: free some space and run again; no compiler was tested", err=True)
        code = Exit.INFRASTRUCTURE
    sys.exit(code)


def _run(command: click.Command, argv: Sequence[str]) -> int:
    """Runs a command and reports errors; returns the exit code."""
    as_json = "--json" in argv
    try:
        result = command.main(args=list(argv), prog_name="assay", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        return _report_error(error, as_json, what=error.format_message(), advice=_usage_advice(error))
    except EXPECTED_ERRORS as error:
        return _report_error(error, as_json, what=str(error), advice=_advice(error))
    except (click.Abort, KeyboardInterrupt):
        echo("assay: interrupted", err=True)
        return INTERRUPTED
    return result if isinstance(result, int) else Exit.OK


def _discard_stdout() -> None:
    """Sends buffered and future output on stdout to /dev/null."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _report_error(error: Exception, as_json: bool, *, what: str, advice: str) -> Exit:
    """Prints what happened, why and what to do next; returns the exit code."""
    code = exit_code(error)
    assert code is not None
    cause = error.__cause__
    why = _truncate(str(cause)) if cause is not None and str(cause) not in what else ""
    if as_json:
        details = {"kind": type(error).__name__, "code": int(code), "what": what, "why": why, "next": advice}
        echo(json.dumps({"error": details}))
    echo(f"assay: {what}", err=True)
    if why:
        echo(f"  why: {why}", err=True)
    echo(f"  next: {advice}", err=True)
    return code


def _truncate(text: str) -> str:
    """The first characters of a cause: a database error holds its statement with all values."""
    return text if len(text) <= _MAX_WHY else f"{text[:_MAX_WHY]} …"


def _advice(error: Exception) -> str:
    """What to do next: the error's notes, else advice for its class."""
    notes = getattr(error, "__notes__", [])
    if notes:
        return " ".join(notes)
    if isinstance(error, SettingsError):
        return "fix the setting and start again; variables override the file"
    if isinstance(error, UsageError):
        return "fix the error above and run the command again"
    if isinstance(error, RefusalError):
        return "grant the permission or raise the limit named above, or wait, then run the command again"
    return "fix the error above and run again; no compiler was tested"


def _usage_advice(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "assay"
    return f"see `{path} --help`"
