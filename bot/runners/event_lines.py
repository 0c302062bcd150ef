"""Events as lines of JSON, as a shard's process prints them and machines of a pool send them."""

from __future__ import annotations

import json

from bot.runners.protocol import Event

#: Three texts of at most fuzzing.outcomes.MAX_TEXT characters, twelve bytes each at worst when escaped,
#: and room for mismatches: a valid line stays below half of this.
MAX_LINE_BYTES = 4 << 20


class MalformedLineError(ValueError):
    """The line is no event; the message says what it is."""


def parse_line(line: bytes) -> Event:
    """The event of a line. Raises MalformedLineError."""
    if len(line) > MAX_LINE_BYTES:
        raise MalformedLineError(f"a line of {len(line)} bytes; at most {MAX_LINE_BYTES} are read")
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise MalformedLineError(f"a line that is no JSON object: {line[:200]!r}")
    return event
