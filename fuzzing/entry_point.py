"""Shared code of the data plane's programs: events on stdout, notes on stderr, exit codes.

An event is a JSON object on one line. A failure is the last event:

    {"event": "error", "kind": "usage" | "refusal" | "toolchain", "message": TEXT}

Exit codes are those of `fuzzing.errors`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from fuzzing import json_encoder
from fuzzing.errors import EXPECTED_ERRORS, Exit, InfrastructureError, UsageError, exit_code

_encode = json_encoder.encoder()  # ASCII: compiler messages may contain unpaired surrogates


def emit_event(**fields: object) -> None:
    """Prints an event, buffered: programs print thousands."""
    sys.stdout.write(_encode(fields) + "\n")


def emit_event_now(**fields: object) -> None:
    """Prints an event and flushes it."""
    emit_event(**fields)
    sys.stdout.flush()


def note(text: str) -> None:
    """Prints progress on stderr and flushes it."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def run_main(name: str, work: Callable[[], None], *, events: bool = True) -> int:
    """Runs `work` as the program `name` and returns its exit code. Failures become events and notes.

    events  False for a program that prints text: failures are only noted

    Internal errors propagate.
    """
    try:
        work()
    except EXPECTED_ERRORS as error:
        if events:
            emit_event(event="error", kind=_kind(error), message=str(error))
        note(f"{name}: {error}")
        return exit_code(error) or Exit.INFRASTRUCTURE
    return Exit.OK


def _kind(error: Exception) -> str:
    if isinstance(error, UsageError):
        return "usage"
    return "toolchain" if isinstance(error, InfrastructureError) else "refusal"
