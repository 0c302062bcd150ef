"""The steps by state. A step registers itself with `@step`; the engine knows none by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from bot.errors import InternalError
from bot.store.models import CampaignState

if TYPE_CHECKING:
    from bot.campaigns.context import Context

Work = Callable[["Context"], None]


@dataclass(frozen=True)
class Step:
    """What is done in one state, and the states it may lead to."""

    state: CampaignState
    to: tuple[CampaignState, ...]
    work: Work


_STEPS: dict[CampaignState, Step] = {}


def step(state: CampaignState, to: tuple[CampaignState, ...]) -> Callable[[Work], Work]:
    """Decorator: makes a function the step of `state`; it must move the campaign to one of `to`."""

    def register(work: Work) -> Work:
        if state in _STEPS:
            raise InternalError(f"two steps for the state {state.value}")
        _STEPS[state] = Step(state, to, work)
        return work

    return register


def step_of(state: CampaignState) -> Step:
    """The step of an unfinished state."""
    return steps()[state]


@cache
def steps() -> dict[CampaignState, Step]:
    """Every step, by state; loads the modules in `bot/campaigns/steps` once."""
    package = importlib.import_module("bot.campaigns.steps")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    if missing := [state.value for state in CampaignState if not state.ended and state not in _STEPS]:
        raise InternalError(f"no step for {', '.join(missing)}")
    return dict(_STEPS)
