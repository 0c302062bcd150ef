"""Reads the installations from GitHub: webhooks about them may be late, out of order or lost.

If a webhook arrives between GitHub's answer and our transaction, the answer is outdated for that
installation or repository and ignored; the task runs again soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from bot.github.resources import InstallationInfo, RepositoryInfo
from bot.github.responses import NotFoundError
from bot.store import Session, periodic_tasks, targets
from bot.store.models import Target, TargetState
from bot.targets import installations as rows
from bot.targets import target_lifecycle
from bot.targets.periodic_tasks import TaskContext, TaskResult, contain_faults, periodic_task
from bot.webhooks.intents import RepositoryRef


# The interval of rust-lang's bors for permissions.
@periodic_task(target_lifecycle.INSTALLATIONS, interval=timedelta(minutes=15), needs_app=True)
def sync_installations(context: TaskContext) -> TaskResult:
    """Updates the rows of installations: state, permissions, repositories."""
    before = _read_event_counts(context)
    found = {one.id: one for one in context.dependencies.github_api.installations()}
    _remove_missing(context, set(found), before)
    repositories = 0
    for facts in found.values():
        context.heartbeat()
        with contain_faults(f"installation {facts.id}"):
            _refresh(context, facts, before.get(facts.id, 0))
            if not facts.suspended:  # GitHub lists no repositories of suspended ones
                repositories += _refresh_repositories(context, facts.id)
    return TaskResult(f"{len(found)} installations, {repositories} repositories")


def _read_event_counts(context: TaskContext) -> dict[int, int]:
    with context.dependencies.database.reading() as session:
        return {row.id: row.event_count for row in targets.installations(session)}


def _remove_missing(context: TaskContext, there: set[int], before: Mapping[int, int]) -> None:
    """Removes the installations that GitHub no longer lists."""
    with context.dependencies.database.transaction() as session:
        for one in sorted(set(before) - there):
            row = targets.lock_installation(session, one)
            if row is not None and row.state != TargetState.REMOVED.value and row.event_count == before[one]:
                rows.remove_installation(session, row, context.dependencies.clock())


def _refresh(context: TaskContext, facts: InstallationInfo, before: int) -> None:
    with context.dependencies.database.transaction() as session:
        at = context.dependencies.clock()
        row, _ = targets.ensure_installation(session, facts.id, facts.account, at)
        if row.state == TargetState.REMOVED.value or row.event_count != before:
            return
        row.account, row.permissions, row.events = (
            facts.account,
            dict(facts.permissions),
            list(facts.events),
        )
        rows.set_suspended(session, row, facts.suspended, at)


def _refresh_repositories(context: TaskContext, installation: int) -> int:
    before = _read_event_counts(context).get(installation, 0)
    with context.dependencies.database.reading() as session:
        event_count = targets.event_count(session)
    try:
        listed = context.dependencies.github_api.installation_repositories(installation)
    except NotFoundError:
        return 0  # removed meanwhile; the next run notices
    with context.dependencies.database.transaction() as session:
        at = context.dependencies.clock()
        row = targets.lock_installation(session, installation)
        if row is None or row.state == TargetState.REMOVED.value or row.event_count != before:
            return 0
        for facts in listed:
            known = targets.of_github_id(session, facts.github_id)
            if known is not None and _has_newer_event(session, known, event_count):
                continue
            target = rows.attach_repository(session, _to_named(facts), installation, at)
            target.private = facts.private
            if target.name != facts.full_name:
                target_lifecycle.rename(session, target, facts.full_name, at)
        seen = {facts.github_id for facts in listed}
        for target in targets.of_installation(session, installation):
            is_missing = target.github_id is not None and target.github_id not in seen
            if is_missing and not _has_newer_event(session, target, event_count):
                rows.detach_repository(session, target, at)
    return len(listed)


def _has_newer_event(session: Session, target: Target, event_count: Mapping[str, int]) -> bool:
    """Whether an event about the repository came after the list was read; then schedules another run."""
    if not target_lifecycle.changed_since(target, event_count):
        return False
    periodic_tasks.run_soon(session, target_lifecycle.INSTALLATIONS)
    return True


def _to_named(facts: RepositoryInfo) -> RepositoryRef:
    return RepositoryRef(name=facts.full_name, github_id=facts.github_id, private=facts.private)
