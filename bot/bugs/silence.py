"""Bugs that nothing shows any more: after which silence they are put away, and that is said.

Syzbot's rule (dashboard/app, obsoleting): sightings are taken for a Poisson process; the silence after which
the chance to have seen nothing would be 1 % is waited for three times, within limits. Never while a program
that shows the bug works, however long ago it was last met: what nobody has run lately is run once more first.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from enum import Enum

from bot.bugs import telling
from bot.bugs.changing import RETEST, ask_retest
from bot.store import Session, bugs, campaigns, findings, jobs, outbox, retests
from bot.store.life import Event
from bot.store.models import Bug, JobState

#: The chance of a silence as long as this that still says nothing; and how often that time is waited for.
CHANCE, TIMES = 0.01, 3
#: So many sightings make a rate; with fewer the longest time is waited.
ENOUGH = 10
SHORTEST, LONGEST = timedelta(days=14), timedelta(days=100)


class Program(Enum):
    """What is known of the program that showed a bug, since it was seen last."""

    NONE = "there is no program of it that could be run"
    UNTRIED = "its program was not run since"
    WORKS = "its program still shows it"
    PASSES = "the program that showed it stopped doing so: it passed when it was run last"
    CANNOT = "the program that showed it cannot be run any more"


def patience(first: datetime, last: datetime, seen: int) -> timedelta:
    """How long nothing must have been seen of a bug that was seen so often between these times."""
    if seen < ENOUGH or last <= first:
        return LONGEST
    mean = (last - first) / (seen - 1)
    wait = mean * -math.log(CHANCE) * TIMES
    return min(max(wait, SHORTEST), LONGEST)


def program(session: Session, bug: Bug) -> Program:
    """What the last run of its program showed, or why there was none."""
    told = [row for row in retests.of_bug(session, bug.id) if row.at > bug.last_seen]
    failed = jobs.last_of(session, RETEST, bug.id, JobState.FAILED)
    if failed is not None and (failed.done_at is None or failed.done_at <= bug.last_seen):
        failed = None
    if told and (failed is None or failed.done_at is None or failed.done_at < told[-1].at):
        if retests.passed(told[-1]):
            return Program.PASSES
        return Program.WORKS if told[-1].healthy else Program.CANNOT
    if failed is not None:
        return Program.CANNOT
    return Program.UNTRIED if bug.case_id or findings.case_of(session, bug.id) else Program.NONE


def look(session: Session, bug: Bug, at: datetime) -> bool:
    """Puts a bug away that nothing shows any more, or has its program run; whether it was put away."""
    quiet = at - bug.last_seen
    if quiet < patience(bug.first_seen, bug.last_seen, bug.seen):
        return False
    state = program(session, bug)
    if state is Program.UNTRIED and _asked(session, bug, at):
        return False
    if state is Program.WORKS:
        return False
    nobody = f"nothing was seen of it for {quiet.days} days"
    why = f"{state.value}, and {nobody}" if state is Program.PASSES else f"{nobody}, and {state.value}"
    outbox.withdraw(session, bug.id, why)
    bugs.move(session, bug, Event.CLOSED, f"obsolete: {why}", at)
    if bug.issue is not None:
        telling.post(session, bug, telling.silent(session, bug, why), at)
    return True


def _asked(session: Session, bug: Bug, at: datetime) -> bool:
    """Asks for its program to be run on the newest build of its branch; False where there is none."""
    seen = campaigns.find(session, bug.campaign_id)
    newest = campaigns.newest(session, bug.target, "", seen.ref if seen is not None else "")
    if newest is None:
        return False
    once = f"{RETEST}:{bug.id}:silent:{bug.seen}:{newest.head[:24]}"  # for each silence
    ask_retest(session, bug, newest, once, "obsolete", at)
    return True
