"""Converters of command arguments. Each returns a value, or raises ValueError with the allowed form."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from bot.config.units import parse_duration

_NUMBER = re.compile(r"#?([1-9][0-9]{0,8})")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_GLOB = re.compile(r"[A-Za-z0-9_.:*?-]{1,100}")
_DAYS = re.compile(r"([1-9][0-9]{0,3})([dw])")
_RELEASE = re.compile(r"[0-9]{1,6}(?:\.[0-9a-z]{1,12}){1,5}")
_RELEASES = re.compile(rf"{_RELEASE.pattern}\.\.{_RELEASE.pattern}")
MAX_MUTE = timedelta(days=366)


def number(text: str) -> int:
    """`#12` or `12`: an issue or a pull request."""
    match = _NUMBER.fullmatch(text)
    if not match:
        raise ValueError(f"must be the number of an issue, such as #12; it is {_quote(text)}")
    return int(match[1])


def sha(text: str) -> str:
    """A commit, in full or its first seven hexadecimal digits at least."""
    if not _SHA.fullmatch(text.lower()):
        raise ValueError(f"must be a commit, seven hexadecimal digits at least; it is {_quote(text)}")
    return text.lower()


def glob(text: str) -> str:
    """A pattern over operators: `Resize`, `torch.nn.*`."""
    if not _GLOB.fullmatch(text):
        raise ValueError(f"must be an operator or a pattern, such as Resize or torch.*; it is {_quote(text)}")
    return text


def duration(text: str) -> float:
    """`90s`, `5m`, `1h` as seconds."""
    return parse_duration(text)


def names(text: str) -> list[str]:
    """`a,b` as a list."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ValueError("must be names separated by commas")
    return found


def non_empty(text: str) -> str:
    """Any text but the empty one."""
    if not text:
        raise ValueError("must not be empty")
    return text


def until(text: str, at: datetime) -> datetime:
    """A day `2026-12-31` (its end, in UTC) or a time from now: `30d`, `2w`, `12h`."""
    end = _end(text, at)
    if not at < end <= at + MAX_MUTE:
        raise ValueError("must lie within a year from now")
    return end


def _end(text: str, at: datetime) -> datetime:
    days = _DAYS.fullmatch(text)
    if days:
        return at + timedelta(days=int(days[1]) * (7 if days[2] == "w" else 1))
    try:
        return datetime.combine(date.fromisoformat(text), datetime.max.time(), UTC)
    except ValueError:
        pass
    try:
        return at + timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        raise ValueError(
            f"must be a day or a time from now, such as 2026-12-31 or 30d; it is {_quote(text)}"
        ) from None


def _quote(text: str) -> str:
    return "`" + re.sub(r"[`\s]|[^\x20-\x7e]", "?", text[:40]) + "`"


def releases(text: str) -> str:
    """`2023.0..2026.4`: two releases of the compiler."""
    if not _RELEASES.fullmatch(text):
        raise ValueError(f"must be two releases, such as 2023.0..2026.4; it is {_quote(text)}")
    return text


def revision(text: str) -> str:
    """`#12`, a commit or a release."""
    if text.startswith("#"):
        return f"#{number(text)}"
    if _SHA.fullmatch(text.lower()) or _RELEASE.fullmatch(text):
        return text.lower()
    raise ValueError(f"must be a pull request (#12), a commit or a release (2026.4.1); it is {_quote(text)}")
