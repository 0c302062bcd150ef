"""Durations and sizes in a configuration: `90s`, `5m`, `1h`, `4GiB`.

Stored configurations hold seconds and bytes. In a file a number needs its unit: validate with
`context=FROM_FILE`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

FROM_FILE = {"units": "required"}

_SECONDS = {"s": 1, "m": 60, "h": 3600}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,3})?)"
_DURATION = re.compile(rf"{_NUMBER} ?({'|'.join(_SECONDS)})")
_SIZE = re.compile(rf"{_NUMBER} ?({'|'.join(_BYTES)})")
_NO_DURATION = "is not a duration; write a number and s, m or h, such as 90s, 5m or 1h"
_NO_SIZE = "is not a size; write a number and B, KiB, MiB or GiB, such as 4GiB"


def parse_duration(value: object, *, bare: bool = False) -> float:
    """Seconds from `90s`, `5m` or `1h`; also from a number if it may be `bare`. Raises ValueError."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if not match:
            raise ValueError(_NO_DURATION)
        return float(match[1]) * _SECONDS[match[2]]
    if bare and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise ValueError(_NO_DURATION)


def parse_size(value: object, *, bare: bool = False) -> int:
    """Bytes from `512MiB` or `4GiB`; also from a number if it may be `bare`. Raises ValueError."""
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if not match:
            raise ValueError(_NO_SIZE)
        return int(float(match[1]) * _BYTES[match[2]])
    if bare and isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(_NO_SIZE)


def show_duration(seconds: float) -> str:
    """The inverse of `parse_duration`, in the largest unit that divides evenly."""
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def show_size(count: int) -> str:
    """The inverse of `parse_size`, in the largest unit that divides evenly."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return f"{count}B"


def _duration(value: Any, info: ValidationInfo) -> float:
    return parse_duration(value, bare=info.context != FROM_FILE)


def _size(value: Any, info: ValidationInfo) -> int:
    return parse_size(value, bare=info.context != FROM_FILE)


#: Seconds, at most a day.
Duration = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=86_400)]
#: Bytes, at most 1 TiB.
Size = Annotated[int, BeforeValidator(_size), Field(gt=0, le=1 << 40)]
