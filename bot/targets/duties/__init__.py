"""Duties: what is done now and then besides answering events. One small file each, found by its name:

    @duty("redeliver", every=timedelta(hours=1), asks=True)
    def redeliver(work: Work) -> Done: ...

`bot.targets.keeper` does them, one process at a time however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from fuzzing.registry import Registry

if TYPE_CHECKING:
    from bot.targets.world import World


@dataclass(frozen=True)
class Done:
    """What came of it: one line for people, and what to know the next time (None: as before)."""

    note: str
    memory: dict[str, Any] | None = None


@dataclass(frozen=True)
class Work:
    """What a duty works with.

    at      when it began
    last    when it was done before, None for the first time
    memory  what it left to be remembered
    look    to be called now and then: keeps the lease; raises a signal of `bot.leases` to end now
    """

    world: World
    at: datetime
    last: datetime | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)
    look: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Duty:
    """A registered duty.

    every   the least time between two times it is done
    asks    whether GitHub is asked: it is left where nobody can log in there
    as_app  whether it is the App that asks: it is left where a personal token is used
    """

    name: str
    every: timedelta
    run: Callable[[Work], Done]
    asks: bool = False
    as_app: bool = False


_DUTIES: Registry[Duty] = Registry("duty", __name__)


def duty(
    name: str, *, every: timedelta, asks: bool = False, as_app: bool = False
) -> Callable[[Callable[[Work], Done]], Callable[[Work], Done]]:
    """Registers a duty."""

    def register(run: Callable[[Work], Done]) -> Callable[[Work], Done]:
        _DUTIES.add(Duty(name, every, run, asks or as_app, as_app), name)
        return run

    return register


def known() -> tuple[Duty, ...]:
    """All duties, by name."""
    return tuple(_DUTIES.get(name) for name in _DUTIES.names())
