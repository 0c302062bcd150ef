"""`press`: somebody used a button of a check run."""

from __future__ import annotations

from bot.jobs.doing import Doing
from bot.jobs.registry import Lane, kind
from bot.pulls import pressing
from bot.store.pulls import PRESS


@kind(PRESS, Lane.QUICK, answers=False)
def press(doing: Doing) -> None:
    """Does what it asks for, if whoever pressed may."""
    pressing.press(doing)
