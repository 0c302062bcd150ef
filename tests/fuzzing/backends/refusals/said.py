"""What a test expects of an exception."""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    """An exception of a backend, and the reason its table must give; None if it is no excuse."""

    backend: str
    error: str
    message: str
    why: str | None
