"""What webhooks missed is found by looking: each repository is asked about every few minutes.

What is found out becomes the intents that the webhooks would have become, with the same keys, so that it does
not matter which of the two comes first. Asking again for what has not changed costs nothing of GitHub's
limit (conditional requests).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.errors import InfrastructureError, RefusalError
from bot.github.limits import ThrottledError
from bot.github.responses import NotFoundError
from bot.store import targets
from bot.store.models import TargetState
from bot.targets import polling, repository_sync, target_lifecycle
from bot.targets.periodic_tasks import TaskContext, TaskResult, periodic_task

#: Where webhooks come: rust-lang's bors looks at its pull requests again as often.
WEBHOOK_INTERVAL = timedelta(minutes=15)
#: Where none come, this is how people wait for us.
POLL_INTERVAL = timedelta(minutes=2)
HOOK_CHECK_INTERVAL = timedelta(hours=1)
BATCH_SIZE = 200  # targets of one round; the rest is due still

log = structlog.get_logger(__name__)


@periodic_task("reconciliation", interval=timedelta(seconds=30), needs_github=True)
def reconcile(context: TaskContext) -> TaskResult:
    """Looks at the repositories that were not looked at for longest."""
    _add_configured_targets(context)
    hook = _read_hook(context)
    looked, refused = 0, 0
    for name in _list_due(context, WEBHOOK_INTERVAL if hook["there"] else POLL_INTERVAL):
        context.heartbeat()
        before = repository_sync.read_event_counts(context)
        try:
            _sync(context, name, has_webhook=hook["there"])
            looked += 1
        except NotFoundError:
            _mark_gone(context, name, before)
        except ThrottledError:
            _request_sync(context, name)
            raise  # for everybody: the next round goes on with those that are left
        except (RefusalError, InfrastructureError) as error:
            refused += 1
            log.warning("repository_sync.failed", target=name, reason=str(error))
            _defer(context, name, before)
    event_count = f", {refused} could not be" if refused else ""
    return TaskResult(f"{looked} repositories looked at{event_count}", {"hook": hook})


def _read_hook(context: TaskContext) -> dict[str, Any]:
    """Whether the App's webhooks are sent anywhere, asked once an hour."""
    known = context.saved_state.get("hook")
    if known and context.at - datetime.fromisoformat(known["at"]) < HOOK_CHECK_INTERVAL:
        return dict(known)
    there = False
    if context.dependencies.github_api.is_app:
        with suppress(NotFoundError):
            there = bool(context.dependencies.github_api.hook_config().url)
    return {"there": there, "at": context.at.isoformat()}


def _add_configured_targets(context: TaskContext) -> None:
    """The repositories that the operator names are targets, whether or not anything comes from them."""
    with context.dependencies.database.reading() as session:
        new = [name for name in context.dependencies.watch if targets.find_any_case(session, name) is None]
    for name in new:
        with context.dependencies.database.transaction() as session:
            target_lifecycle.get_or_create(session, name, None, context.at)


def _list_due(context: TaskContext, interval: timedelta) -> list[str]:
    at = context.dependencies.clock()
    with context.dependencies.database.reading() as session:
        has_webhook = targets.due_for_reconciliation(session, at - interval, BATCH_SIZE, has_webhook=True)
        polled = targets.due_for_reconciliation(session, at - POLL_INTERVAL, BATCH_SIZE, has_webhook=False)
    return (polled + has_webhook)[:BATCH_SIZE]


def _sync(context: TaskContext, name: str, *, has_webhook: bool) -> None:
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
        if target is None:
            return  # forgotten meanwhile
        unheard = polling.list_events_to_poll(session, target) if has_webhook else polling.EVENTS
    began, last = context.dependencies.clock(), target.polled_at or target.reconciled_at
    name = repository_sync.sync_repository(context, name)
    if not unheard:
        return
    if last is not None:
        polling.poll(context, name, last, unheard)
    _record_poll(context, name, began)


def _mark_gone(context: TaskContext, name: str, before: Mapping[str, int]) -> None:
    """GitHub answers that there is no such repository, to us at least; and nobody told us otherwise since."""
    with context.dependencies.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or target_lifecycle.changed_since(target, before):
            return
        target.reconciled_at = context.dependencies.clock()
        reason = "GitHub knows no such repository, or hides it from us"
        target_lifecycle.stop_watching(
            session, target, TargetState.GONE, reason, context.dependencies.clock()
        )


def _record_poll(context: TaskContext, name: str, began: datetime) -> None:
    """All was heard that happened before: the next poll begins there, whatever became of other looks."""
    with context.dependencies.database.transaction(durable=False) as session:
        target = targets.lock(session, name)
        if target is not None:
            target.polled_at = began


def _request_sync(context: TaskContext, name: str) -> None:
    with context.dependencies.database.transaction() as session:
        target = targets.lock(session, name)
        if target is not None:
            target_lifecycle.request_sync(target)


def _defer(context: TaskContext, name: str, before: Mapping[str, int]) -> None:
    """It waits for its next turn: what is refused today would be refused at once again.

    Where somebody has asked for another look meanwhile, that is due all the same.
    """
    with context.dependencies.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or target_lifecycle.changed_since(target, before):
            return
        if target.reconciled_at is not None:
            target.reconciled_at = context.dependencies.clock()
