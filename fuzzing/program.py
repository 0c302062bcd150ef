"""What the programs of the data plane share: events on stdout, notes on stderr, exit codes.

An event is a JSON object on a line of its own. Exit codes: 0 done, 2 the caller's mistake, 3 the machine's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from fuzzing.errors import InfrastructureError, UsageError


def event(**fields: object) -> None:
    """Prints an event. It waits in the buffer: a program tells thousands."""
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """Says on stderr, at once, how far the program is."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def ended(name: str, work: Callable[[], None]) -> int:
    """Does the work of the program `name`; its exit code. What it could not do is noted.

    Errors of any other kind are our own, and pass.
    """
    try:
        work()
    except UsageError as error:
        note(f"{name}: {error}")
        return 2
    except InfrastructureError as error:
        note(f"{name}: {error}")
        return 3
    return 0
