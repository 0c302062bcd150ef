"""Cron lines as in crontab(5) and GitHub's schedules, on APScheduler's cron trigger.

APScheduler counts weekdays from Monday, cron from Sunday, so weekdays become names. With both a day of the
month and a weekday, cron runs on either, APScheduler on days that match both, so such a line becomes two
triggers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def parse_triggers(line: str) -> list[CronTrigger]:
    """The triggers of a line of five fields, in UTC. Raises ValueError with the mistake."""
    fields = line.split()
    if len(fields) != 5:
        raise ValueError(f"it has {len(fields)} fields instead of 5")
    minute, hour, day, month, weekday = fields
    days = ",".join(_DAYS[number] for number in _weekdays(weekday.lower()))
    if len(days.split(",")) == len(_DAYS):
        days = "*"
    either = [(day, "*"), ("*", days)] if day != "*" and days != "*" else [(day, days)]
    return [
        CronTrigger(minute=minute, hour=hour, day=one, month=month.lower(), day_of_week=other, timezone="UTC")
        for one, other in either
    ]


def next_time(line: str, after: datetime) -> datetime | None:
    """The first time of a line after `after`, in UTC; None if there is none (30 February)."""
    begin = after + timedelta(microseconds=1)
    found = [trigger.get_next_fire_time(None, begin) for trigger in parse_triggers(line)]
    return min((one for one in found if one is not None), default=None)


def _weekdays(field: str) -> list[int]:
    """The weekdays of a field, Sunday as 0."""
    return sorted({number % 7 for part in field.split(",") for number in _part(part)})


def _part(part: str) -> Iterator[int]:
    span, _, step = part.partition("/")
    first, dash, last = span.partition("-")
    begin = 0 if span == "*" else _day(first)
    if span == "*":
        end = 6
    elif dash:
        end = _day(last)
    else:
        end = 6 if step else begin
    if end == 0 and begin > 0:
        end = 7  # mon-sun
    if begin > end:
        raise ValueError(f"the weekdays {part!r} end before they begin")
    return iter(range(begin, end + 1, _step(step, part)))


def _step(step: str, part: str) -> int:
    if not step:
        return 1
    if not (step.isascii() and step.isdigit() and int(step)):
        raise ValueError(f"the weekdays {part!r} need a whole number after the /")
    return int(step)


def _day(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if len(text) == 1 and text in "01234567":
        return int(text)
    raise ValueError(f"{text!r} is not a weekday; write 0 to 7 (both are Sunday) or sun to sat")
