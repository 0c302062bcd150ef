"""Deliveries that GitHub could not make are asked for again: it never tries twice by itself.

GitHub keeps what it tried to deliver for 3 days (Enterprise Server for 7), says its documentation,
"Handling failed webhook deliveries". Attempts at one delivery share its GUID, which is our inbox's key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from bot.github.facts import DeliveryFacts
from bot.store import inbox
from bot.targets.duties import Done, Work, duty

KEPT = timedelta(days=3)
#: What was tried less than this ago may still be under way.
UNDER_WAY = timedelta(minutes=5)
#: After so many attempts it is left: a delivery that we refuse is refused each time.
MAX_ATTEMPTS = 6
#: Asked for again at once, at most; the rest an hour later.
AT_ONCE = 300


@duty("redeliver", every=timedelta(hours=1), as_app=True)
def redeliver(work: Work) -> Done:
    """Asks for each delivery again of which no attempt arrived, the oldest first."""
    missed, left = _missed(work)
    for attempt in missed[:AT_ONCE]:
        work.look()
        work.world.hub.redeliver(attempt.id)
    asked = min(len(missed), AT_ONCE)
    given_up = f", {left} given up after {MAX_ATTEMPTS} attempts" if left else ""
    return Done(f"{asked} deliveries asked for again{given_up}")


def _missed(work: Work) -> tuple[list[DeliveryFacts], int]:
    """The last attempt at each delivery that never arrived, and how many are not tried any more."""
    attempts = _by_delivery(work.world.hub.deliveries(work.at - KEPT))
    open_ = {guid: tries for guid, tries in attempts.items() if not any(one.arrived for one in tries)}
    with work.world.database.reading() as session:
        stored = inbox.known(session, open_)
    missed, left = [], 0
    for guid, tries in open_.items():
        last = max(tries, key=lambda one: one.delivered_at)
        if guid in stored or work.at - last.delivered_at < UNDER_WAY:
            continue
        if len(tries) >= MAX_ATTEMPTS:
            left += 1
        else:
            missed.append(last)
    return sorted(missed, key=lambda one: (one.delivered_at, one.id)), left


def _by_delivery(attempts: Iterable[DeliveryFacts]) -> dict[str, list[DeliveryFacts]]:
    found: dict[str, list[DeliveryFacts]] = defaultdict(list)
    for attempt in attempts:
        found[attempt.guid].append(attempt)
    return found
