"""The steps by state. A step registers itself with `@step`; the queue names none."""

from __future__ import annotations

from collections.abc import Callable

from bot.campaigns.context import Context, Step
from bot.store.models import CampaignState
from fuzzing.registry import Registry

Work = Callable[[Context], None]

_STEPS: Registry[Step] = Registry("step", "bot.campaigns.steps")


def step(state: CampaignState, to: tuple[CampaignState, ...]) -> Callable[[Work], Work]:
    """Decorator: makes a function the step of `state`; it must move the campaign to one of `to`."""

    def register(work: Work) -> Work:
        _STEPS.add(Step(state, to, work), state.value)
        return work

    return register


def get_step(state: CampaignState) -> Step:
    """The step of an unfinished state."""
    return _STEPS.get(state.value)
