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
from bot.github.resources import DeliveryInfo
from bot.store import inbox
from bot.targets.periodic_tasks import TaskContext, TaskResult, periodic_task

GITHUB_RETENTION = timedelta(days=3)
#: What was tried less than this ago may still be under way.
IN_FLIGHT = timedelta(minutes=5)
#: After so many attempts it is left: a delivery that we refuse is refused each time.
MAX_ATTEMPTS = 6
#: The last of them are looked at once more: what was under way the last time, and what was asked for then.
OVERLAP = timedelta(hours=2)
SINCE = "since"  # in the duty's memory
#: Asked for again at once, at most; the rest an hour later.
BATCH_SIZE = 300

log = structlog.get_logger(__name__)


@periodic_task("redelivery", interval=timedelta(hours=1), needs_app=True)
def redeliver(context: TaskContext) -> TaskResult:
    """Asks for each delivery again of which no attempt arrived, the oldest first."""
    missed, left = _find_missed(context, _find_start(context))
    asked = sum(_request_redelivery(context, attempts[-1]) for attempts in missed[:BATCH_SIZE])
    # All attempts at what is still missed must be seen the next time, or they could not be counted.
    oldest = min((attempts[0].delivered_at for attempts in missed), default=context.at)
    since = min(oldest, context.at - OVERLAP)
    given_up = f", {left} given up after {MAX_ATTEMPTS} attempts" if left else ""
    return TaskResult(f"{asked} deliveries asked for again{given_up}", {SINCE: since.isoformat()})


def _find_start(context: TaskContext) -> datetime:
    """How far back there may be deliveries that did not arrive: all before that were settled."""
    known = context.saved_state.get(SINCE)
    far = context.at - GITHUB_RETENTION
    return max(far, datetime.fromisoformat(known)) if known else far


def _request_redelivery(context: TaskContext, attempt: DeliveryInfo) -> bool:
    """Whether GitHub tries once more."""
    context.heartbeat()
    try:
        context.dependencies.github_api.redeliver(attempt.id)
    except RefusalError as error:  # GitHub keeps it no more, or not for us
        log.warning("redelivery.refused", delivery=attempt.guid, reason=str(error))
        return False
    return True


def _find_missed(context: TaskContext, since: datetime) -> tuple[list[list[DeliveryInfo]], int]:
    """The attempts at each delivery that never arrived, in order, and how many are not tried any more."""
    attempts = _group_by_delivery(context.dependencies.github_api.deliveries(since))
    open_ = {guid: tries for guid, tries in attempts.items() if not any(one.arrived for one in tries)}
    with context.dependencies.database.reading() as session:
        stored = inbox.known(session, open_)
    missed, left = [], 0
    for guid, tries in open_.items():
        if guid in stored or context.at - tries[-1].delivered_at < IN_FLIGHT:
            continue
        if len(tries) >= MAX_ATTEMPTS:
            left += 1
        else:
            missed.append(tries)
    return missed, left


def _group_by_delivery(attempts: Iterable[DeliveryInfo]) -> dict[str, list[DeliveryInfo]]:
    """The attempts at each delivery, the oldest first."""
    found: dict[str, list[DeliveryInfo]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda one: (one.delivered_at, one.id)):
        found[attempt.guid].append(attempt)
    return found
