"""`since`: the release in which a filed bug began, without being asked; its issue is told.

Nobody waits for it: it gives way to every campaign and every other job that runs compilers, and goes on where
it was, for what releases did is kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta

from bot.bisection.telling import lines
from bot.bugs import since
from bot.bugs.since import SINCE
from bot.jobs import running
from bot.jobs.doing import Doing
from bot.jobs.registry import Lane, kind, of_lane
from bot.jobs.releasing import Asking, between
from bot.store import bugs, campaigns, jobs
from bot.store.models import Bug

#: Ours: how long it stays away when something else wants the machine, and how often it looks for that.
AWAY, LOOK_S = timedelta(minutes=1), 5.0
#: Ours: one that has waited so long goes on whatever else there is, or a busy machine would never get there.
PATIENCE = timedelta(hours=12)


class _GaveWayError(Exception):
    """Something else wants the machine."""


@kind(SINCE)
def find(doing: Doing) -> None:
    """Asks the releases, keeps what they say with the bug, and tells its issue if that is an answer."""
    with doing.database.reading() as session:
        known = running.known(session, doing)
        quiet = since.over(known.bug)
    if quiet:
        with doing.transaction() as (session, job):
            doing.done(session, job, quiet)
        return
    minding = _Minding(doing)
    asking = Asking(doing, known, between(doing, known), known.config.budget, minding)
    try:
        minding.look()
        answer = asking.began()
    except _GaveWayError:
        _come_back(doing)
        return
    with doing.transaction() as (session, job):
        bug = session.get_one(Bug, known.bug.id)
        if bugs.lives(bug) != bugs.lives(known.bug):
            doing.done(session, job, "it was over and is back: its last life is nobody's question any more")
            return
        bugs.learn(session, bug, "bisection", {**bug.facts.get("bisection", {}), "since": answer})
        since.tell(session, bug, str(doing.errand.arguments["effect"]), doing.services.clock.now())
        doing.done(session, job, lines(answer)[0], since=answer)


@dataclass
class _Minding:
    """Minds the job's lease, and whether something else wants the machine."""

    doing: Doing
    _looked: float = field(default=-LOOK_S, init=False)

    def look(self) -> None:
        """As `Doing.look`; raises _GaveWayError besides."""
        self.doing.look()
        present = time.monotonic()
        if present - self._looked >= LOOK_S:
            self._looked = present
            if _in_the_way(self.doing):
                raise _GaveWayError

    def progress(self, done: int, total: int, note: str) -> None:
        """As `Doing.progress`."""
        self.doing.progress(done, total, note)


def _in_the_way(doing: Doing) -> bool:
    """Whether a campaign or another job waits for the machine, and this one has patience left."""
    at = doing.services.clock.now()
    others = [name for name in of_lane(Lane.LONG) if name != SINCE]
    with doing.database.reading() as session:
        mine = jobs.of_key(session, doing.errand.key)
        if mine is None or at - mine.created_at >= PATIENCE:
            return False
        return campaigns.any_unfinished(session) or jobs.any_due(session, others, at)


def _come_back(doing: Doing) -> None:
    """Gives the job back as one that has not been begun, due a little later."""
    with doing.transaction() as (_, job):
        jobs.release(job)
        jobs.postpone(job, "gave way to other work", doing.services.clock.now() + AWAY)
