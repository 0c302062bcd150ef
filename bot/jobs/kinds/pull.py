"""`pull`: a pull request is looked at, and tested, or told why it is not."""

from __future__ import annotations

from bot.jobs.doing import Doing
from bot.jobs.registry import Lane, kind
from bot.pulls import looking
from bot.store.pulls import LOOK


@kind(LOOK, Lane.QUICK, answers=False)
def pull(doing: Doing) -> None:
    """Looks at it."""
    looking.look(doing)
