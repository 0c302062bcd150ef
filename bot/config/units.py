"""Durations and sizes as people write them in a configuration: `90s`, `5m`, `1h`, `4GiB`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

_SECONDS = {"s": 1, "m": 60, "h": 3600}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NUMBER = r"(\d{1,9}(?:\.\d{1,3})?)"
_DURATION = re.compile(rf"{_NUMBER} ?({'|'.join(_SECONDS)})")
_SIZE = re.compile(rf"{_NUMBER} ?({'|'.join(_BYTES)})")
_NO_DURATION = "is no duration; write a number and s, m or h, such as 90s, 5m or 1h"
_NO_SIZE = "is no size; write a number and B, KiB, MiB or GiB, such as 4GiB"


def parse_duration(value: object) -> object:
    """Seconds from `90s`, `5m` or `1h`; a bare number is left as it is, in seconds, for stored JSON."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if not match:
            raise ValueError(_NO_DURATION)
        return float(match[1]) * _SECONDS[match[2]]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise ValueError(_NO_DURATION)


def parse_size(value: object) -> object:
    """Bytes from `512MiB` or `4GiB`; a bare number is left as it is, in bytes, for stored JSON."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if not match:
            raise ValueError(_NO_SIZE)
        return int(float(match[1]) * _BYTES[match[2]])
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(_NO_SIZE)


def show_duration(seconds: float) -> str:
    """The inverse of `parse_duration`, in the largest unit that divides evenly."""
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"


def show_size(count: int) -> str:
    """The inverse of `parse_size`, in the largest unit that divides evenly."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return f"{count}B"


#: Seconds; at most a day, which no campaign and no phase needs.
Duration = Annotated[float, BeforeValidator(parse_duration), Field(gt=0, le=86_400)]
#: Bytes; at most 1 TiB.
Size = Annotated[int, BeforeValidator(parse_size), Field(gt=0, le=1 << 40)]
