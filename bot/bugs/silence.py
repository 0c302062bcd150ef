"""Bugs that nothing shows any more: after which silence they are put away, and that is said. One rule, pure.

Syzbot's (dashboard/app, obsoleting): sightings are taken for a Poisson process; the silence after which the
chance to have seen nothing would be 1 % is waited for three times, within limits. Never while a program that
shows the bug works, however long ago it was run by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.store.models import Bug, BugState, Retest
from bot.store.retests import passed

#: The chance of a silence as long as this that still says nothing; and how often that time is waited for.
CHANCE, TIMES = 0.01, 3
#: So many sightings make a rate; with fewer the longest time is waited.
ENOUGH = 10
SHORTEST, LONGEST = timedelta(days=14), timedelta(days=100)

#: States that silence can end; those that are over need no end, and what is FIXED waits for its second proof.
ENDED = (BugState.NEW, BugState.HELD, BugState.REPORTED)


def patience(first: datetime, last: datetime, seen: int) -> timedelta:
    """How long nothing must have been seen of a bug that was seen so often between these times."""
    if seen < ENOUGH or last <= first:
        return LONGEST
    mean = (last - first) / (seen - 1)
    wait = mean * -math.log(CHANCE) * TIMES
    return min(max(wait, SHORTEST), LONGEST)


def over(bug: Bug, tests: Sequence[Retest], at: datetime, *, runnable: bool) -> str:
    """Why nothing shows the bug any more; "" while something might.

    tests     its retests, oldest first
    runnable  whether there is a program of it, and a build to run it on
    """
    quiet = at - bug.last_seen
    if BugState(bug.state) not in ENDED or quiet < patience(bug.first_seen, bug.last_seen, bug.seen):
        return ""
    said = f"nothing was seen of it for {quiet.days} days"
    since = [row for row in tests if row.at > bug.last_seen]
    if not since:
        return "" if runnable else f"{said}, and there is no program of it that could be run"
    if not passed(since[-1]):
        return ""
    return f"{said}, and the program that showed it stopped working: it passed when it was run last"
