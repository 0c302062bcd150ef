"""Deliveries that GitHub could not make are asked for again: it never tries twice by itself.

GitHub keeps what it tried to deliver for 3 days (Enterprise Server for 7), says its documentation,
"Handling failed webhook deliveries". Attempts at one delivery share its GUID, which is our inbox's key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from bot.errors import RefusalError
from bot.github.facts import DeliveryFacts
from bot.store import inbox
from bot.targets.duties import Done, Work, duty

KEPT = timedelta(days=3)
#: What was tried less than this ago may still be under way.
UNDER_WAY = timedelta(minutes=5)
#: After so many attempts it is left: a delivery that we refuse is refused each time.
MAX_ATTEMPTS = 6
#: The last of them are looked at once more: what was under way the last time, and what was asked for then.
AGAIN = timedelta(hours=2)
SINCE = "since"  # in the duty's memory
#: Asked for again at once, at most; the rest an hour later.
AT_ONCE = 300

log = structlog.get_logger(__name__)


@duty("redeliver", every=timedelta(hours=1), as_app=True)
def redeliver(work: Work) -> Done:
    """Asks for each delivery again of which no attempt arrived, the oldest first."""
    missed, left = _missed(work, _since(work))
    asked = sum(_again(work, attempts[-1]) for attempts in missed[:AT_ONCE])
    # All attempts at what is still missed must be seen the next time, or they could not be counted.
    oldest = min((attempts[0].delivered_at for attempts in missed), default=work.at)
    since = min(oldest, work.at - AGAIN)
    given_up = f", {left} given up after {MAX_ATTEMPTS} attempts" if left else ""
    return Done(f"{asked} deliveries asked for again{given_up}", {SINCE: since.isoformat()})


def _since(work: Work) -> datetime:
    """How far back there may be deliveries that did not arrive: all before that were settled."""
    known = work.memory.get(SINCE)
    far = work.at - KEPT
    return max(far, datetime.fromisoformat(known)) if known else far


def _again(work: Work, attempt: DeliveryFacts) -> bool:
    """Whether GitHub tries once more."""
    work.look()
    try:
        work.world.hub.redeliver(attempt.id)
    except RefusalError as error:  # GitHub keeps it no more, or not for us
        log.warning("a delivery cannot be had again", delivery=attempt.guid, reason=str(error))
        return False
    return True


def _missed(work: Work, since: datetime) -> tuple[list[list[DeliveryFacts]], int]:
    """The attempts at each delivery that never arrived, in order, and how many are not tried any more."""
    attempts = _by_delivery(work.world.hub.deliveries(since))
    open_ = {guid: tries for guid, tries in attempts.items() if not any(one.arrived for one in tries)}
    with work.world.database.reading() as session:
        stored = inbox.known(session, open_)
    missed, left = [], 0
    for guid, tries in open_.items():
        if guid in stored or work.at - tries[-1].delivered_at < UNDER_WAY:
            continue
        if len(tries) >= MAX_ATTEMPTS:
            left += 1
        else:
            missed.append(tries)
    return missed, left


def _by_delivery(attempts: Iterable[DeliveryFacts]) -> dict[str, list[DeliveryFacts]]:
    """The attempts at each delivery, the oldest first."""
    found: dict[str, list[DeliveryFacts]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda one: (one.delivered_at, one.id)):
        found[attempt.guid].append(attempt)
    return found
