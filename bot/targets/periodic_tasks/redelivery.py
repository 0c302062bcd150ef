"""Requests failed deliveries again, because GitHub does not retry by itself.

GitHub keeps deliveries for 3 days, Enterprise Server for 7 ("Handling failed webhook deliveries"). All
attempts of a delivery share its GUID, the key of our inbox.
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
#: A younger attempt may still be in flight.
IN_FLIGHT = timedelta(minutes=5)
#: After so many attempts a delivery is given up: we refuse it each time.
MAX_ATTEMPTS = 6
#: Checked again each time: attempts that were in flight or requested in the last run.
OVERLAP = timedelta(hours=2)
SINCE = "since"  # key in the saved state
#: Requests of one run; the rest follow in the next.
BATCH_SIZE = 300

log = structlog.get_logger(__name__)


@periodic_task("redelivery", interval=timedelta(hours=1), needs_app=True)
def redeliver(context: TaskContext) -> TaskResult:
    """Requests each delivery without a successful attempt, oldest first."""
    missed, left = _find_missed(context, _find_start(context))
    requested = sum(_request_redelivery(context, attempts[-1]) for attempts in missed[:BATCH_SIZE])
    # The next run must read all attempts of the missed deliveries to count them.
    oldest = min((attempts[0].delivered_at for attempts in missed), default=context.at)
    since = min(oldest, context.at - OVERLAP)
    given_up = f", {left} given up after {MAX_ATTEMPTS} attempts" if left else ""
    return TaskResult(f"{requested} deliveries requested again{given_up}", {SINCE: since.isoformat()})


def _find_start(context: TaskContext) -> datetime:
    """The time from which deliveries may be missing."""
    known = context.saved_state.get(SINCE)
    far = context.at - GITHUB_RETENTION
    return max(far, datetime.fromisoformat(known)) if known else far


def _request_redelivery(context: TaskContext, attempt: DeliveryInfo) -> bool:
    """Requests one more attempt; False if GitHub refuses."""
    context.heartbeat()
    try:
        context.dependencies.github_api.redeliver(attempt.id)
    except RefusalError as error:  # it expired, or is another App's
        log.warning("redelivery.refused", delivery=attempt.guid, reason=str(error))
        return False
    return True


def _find_missed(context: TaskContext, since: datetime) -> tuple[list[list[DeliveryInfo]], int]:
    """The attempts of each missing delivery in order, and the number of those given up."""
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
    """The attempts of each delivery, oldest first."""
    found: dict[str, list[DeliveryInfo]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda one: (one.delivered_at, one.id)):
        found[attempt.guid].append(attempt)
    return found
