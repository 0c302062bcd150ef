"""What the programs of the data plane share: events on stdout, notes on stderr, exit codes.

An event is a JSON object on a line of its own. What a program could not do is its last one:

    {"event": "error", "kind": "usage" | "toolchain", "message": TEXT}

Exit codes: 0 done, 2 the caller's mistake ("usage"), 3 the machine's ("toolchain").
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from fuzzing import json_encoder
from fuzzing.errors import InfrastructureError, UsageError

_encode = json_encoder.encoder()  # ASCII: what compilers say may hold half a surrogate pair


def emit_event(**fields: object) -> None:
    """Prints an event. It waits in the buffer: a program tells thousands."""
    sys.stdout.write(_encode(fields) + "\n")


def emit_event_now(**fields: object) -> None:
    """Prints an event that somebody waits for, or that must not be lost when the program dies."""
    emit_event(**fields)
    sys.stdout.flush()


def note(text: str) -> None:
    """Says on stderr, at once, how far the program is."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def run_main(name: str, work: Callable[[], None], *, events: bool = True) -> int:
    """Does the work of the program `name`; its exit code. What it could not do is an event, and noted.

    events  False for a program that prints text for people: it only notes

    Errors of any other kind are our own, and pass.
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
