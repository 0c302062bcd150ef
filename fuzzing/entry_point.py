"""What the programs of the data plane share: events on stdout, notes on stderr, exit codes.

An event is a JSON object on a line of its own. A failure is the last one:

    {"event": "error", "kind": "usage" | "toolchain", "message": TEXT}

Exit codes: 0 success, 2 usage error, 3 failure of the toolchain or machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from fuzzing import json_encoder
from fuzzing.errors import InfrastructureError, UsageError

_encode = json_encoder.encoder()  # ASCII: what compilers say may hold half a surrogate pair


def emit_event(**fields: object) -> None:
    """Prints an event, buffered: programs print thousands."""
    sys.stdout.write(_encode(fields) + "\n")


def emit_event_now(**fields: object) -> None:
    """Prints an event and flushes it."""
    emit_event(**fields)
    sys.stdout.flush()


def note(text: str) -> None:
    """Prints progress on stderr, flushed."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def run_main(name: str, work: Callable[[], None], *, events: bool = True) -> int:
    """Runs `work` as the program `name` and returns its exit code. Failures become events and notes.

    events  False for a program that prints text: failures are noted only

    Internal errors propagate.
    """
    try:
        work()
    except (UsageError, InfrastructureError) as error:
        kind, code = ("usage", 2) if isinstance(error, UsageError) else ("toolchain", 3)
        if events:
            emit_event(event="error", kind=kind, message=str(error))
        note(f"{name}: {error}")
        return code
    return 0
