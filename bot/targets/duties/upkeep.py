"""Rows that say nothing any more are dropped, and effects for whoever is not watched are given up."""

from __future__ import annotations

from datetime import timedelta

from bot.store import retention, targets
from bot.targets.duties import Done, Work, duty

#: GitHub's limits look back an hour; a day is kept for people.
SPENDING = timedelta(days=1)
#: An answer that nobody asked for again in so long is not worth its place.
ANSWERS = timedelta(days=30)
#: Rows dropped in one transaction: others want to write, too.
AT_ONCE = 500


@duty("upkeep", every=timedelta(hours=1))
def upkeep(work: Work) -> Done:
    """Drops old deliveries, spending and answers."""
    dropped = {}
    for what, age in (
        (retention.deliveries, work.world.keeping.deliveries),
        (retention.spending, SPENDING),
        (retention.answers, ANSWERS),
    ):
        dropped[what.__name__] = _drop(work, what, age)
    with work.world.database.transaction() as session:
        for target in targets.unwatched_with_effects(session):
            targets.stop(session, target.name, target.reason, work.at)
    told = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
    return Done(f"dropped: {told}" if told else "nothing to drop")


def _drop(work: Work, what: retention.Drop, age: timedelta) -> int:
    total = 0
    while True:
        work.look()
        with work.world.database.transaction(durable=False) as session:
            count = what(session, work.at - age, AT_ONCE)
        total += count
        if count < AT_ONCE:
            return total
