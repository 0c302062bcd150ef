"""Finds events that webhooks missed: reads each repository from GitHub every few minutes.

A difference becomes the intent that the webhook would have become, with the same key, so the order of the two
does not matter. Unchanged answers cost nothing of GitHub's rate limit (conditional requests).

A repository whose processing fails is quarantined with the reason and retried with growing delays; others are
not affected.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from bot.errors import InfrastructureError, RefusalError
from bot.github.limits import ThrottledError
from bot.github.responses import NotFoundError
from bot.store import targets
from bot.store.models import TargetState
from bot.targets import polling, repository_sync, target_lifecycle
from bot.targets.periodic_tasks import TaskContext, TaskResult, contain_faults, periodic_task

#: With webhooks; rust-lang's bors reads its pull requests as often.
WEBHOOK_INTERVAL = timedelta(minutes=15)
#: Without webhooks; users wait this long.
POLL_INTERVAL = timedelta(minutes=2)
HOOK_CHECK_INTERVAL = timedelta(hours=1)
BATCH_SIZE = 200  # targets of one run; the rest stay due
#: Delays after failures in a row of one repository.
MIN_QUARANTINE, MAX_QUARANTINE = timedelta(minutes=2), timedelta(hours=6)
SHOWN_FAULTS = 3  # in the task's note, which `assay status` shows

log = structlog.get_logger(__name__)


@periodic_task("reconciliation", interval=timedelta(seconds=30), needs_github=True)
def reconcile(context: TaskContext) -> TaskResult:
    """Reads the repositories that were not read for longest."""
    _add_configured_targets(context)
    hook = _read_hook(context)
    faults = _Faults(dict(context.saved_state.get("faults", {})), context.at)
    synced, refused = 0, 0
    for name in _list_due(context, WEBHOOK_INTERVAL if hook["there"] else POLL_INTERVAL, faults):
        context.heartbeat()
        before = repository_sync.read_event_counts(context)
        with contain_faults(name, partial(faults.add, name)):
            try:
                _sync(context, name, has_webhook=hook["there"])
                synced += 1
                faults.clear(name)
            except NotFoundError:
                _mark_gone(context, name, before)
            except ThrottledError:
                _request_sync(context, name)
                raise  # the limit is shared by all targets: the next run continues with the rest
            except (RefusalError, InfrastructureError) as error:
                refused += 1
                log.warning("repository_sync.failed", target=name, reason=str(error))
                _defer(context, name, before)
    note = f"{synced} repositories read" + (f", {refused} failed" if refused else "") + faults.note
    return TaskResult(note, {"hook": hook, "faults": faults.known})


@dataclass(frozen=True)
class _Faults:
    """Quarantined repositories: name → {"failures", "until", "reason"}."""

    known: dict[str, dict[str, Any]]
    at: datetime

    def add(self, name: str, error: Exception) -> None:
        failures = self.known.get(name, {}).get("failures", 0) + 1
        delay = min(MIN_QUARANTINE * 2 ** min(failures - 1, 10), MAX_QUARANTINE)
        until = (self.at + delay).isoformat()
        reason = f"{type(error).__name__}: {error}"[:200]
        self.known[name] = {"failures": failures, "until": until, "reason": reason}

    def clear(self, name: str) -> None:
        self.known.pop(name, None)

    def holds(self, name: str) -> bool:
        return name in self.known and self.at < datetime.fromisoformat(self.known[name]["until"])

    @property
    def note(self) -> str:
        """The repositories and reasons, for `assay status`."""
        shown = [f"{name} ({one['reason']})" for name, one in sorted(self.known.items())]
        more = f" and {len(shown) - SHOWN_FAULTS} more" if len(shown) > SHOWN_FAULTS else ""
        return f"; quarantined: {', '.join(shown[:SHOWN_FAULTS])}{more}" if shown else ""


def _read_hook(context: TaskContext) -> dict[str, Any]:
    """Whether the App's webhooks have an address, read once an hour."""
    known = context.saved_state.get("hook")
    if known and context.at - datetime.fromisoformat(known["at"]) < HOOK_CHECK_INTERVAL:
        return dict(known)
    there = False
    if context.dependencies.github_api.is_app:
        with suppress(NotFoundError):
            there = bool(context.dependencies.github_api.hook_config().url)
    return {"there": there, "at": context.at.isoformat()}


def _add_configured_targets(context: TaskContext) -> None:
    """Makes targets of the repositories that the operator names."""
    with context.dependencies.database.reading() as session:
        new = [name for name in context.dependencies.watch if targets.find_any_case(session, name) is None]
    for name in new:
        with context.dependencies.database.transaction() as session:
            target_lifecycle.get_or_create(session, name, None, context.at)


def _list_due(context: TaskContext, interval: timedelta, faults: _Faults) -> list[str]:
    at, limit = context.dependencies.clock(), BATCH_SIZE + len(faults.known)
    with context.dependencies.database.reading() as session:
        has_webhook = targets.due_for_reconciliation(session, at - interval, limit, has_webhook=True)
        polled = targets.due_for_reconciliation(session, at - POLL_INTERVAL, limit, has_webhook=False)
    return [name for name in polled + has_webhook if not faults.holds(name)][:BATCH_SIZE]


def _sync(context: TaskContext, name: str, *, has_webhook: bool) -> None:
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
        if target is None:
            return  # deleted meanwhile
        unheard = polling.list_events_to_poll(session, target) if has_webhook else polling.EVENTS
    began, last = context.dependencies.clock(), target.polled_at or target.reconciled_at
    name = repository_sync.sync_repository(context, name)
    if not unheard:
        return
    if last is not None:
        polling.poll(context, name, last, unheard)
    _record_poll(context, name, began)


def _mark_gone(context: TaskContext, name: str, before: Mapping[str, int]) -> None:
    """Marks a repository as gone after a 404, unless an event about it came meanwhile."""
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
    """Sets where the next poll begins."""
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
    """Postpones the repository to its next turn, unless an event about it came meanwhile."""
    with context.dependencies.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or target_lifecycle.changed_since(target, before):
            return
        if target.reconciled_at is not None:
            target.reconciled_at = context.dependencies.clock()
