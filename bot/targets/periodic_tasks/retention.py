"""Repositories that are no longer ours to see are forgotten, a stated time after they were lost."""

from __future__ import annotations

from datetime import timedelta

import structlog

from bot.errors import RefusalError
from bot.store import response_cache, targets
from bot.targets import target_deletion
from bot.targets.periodic_tasks import TaskContext, TaskResult, contain_faults, periodic_task

log = structlog.get_logger(__name__)


@periodic_task("retention", interval=timedelta(hours=6))
def delete_removed_targets(context: TaskContext) -> TaskResult:
    """Deletes what belongs to them."""
    kept = context.dependencies.retention_policy.removed
    with context.dependencies.database.reading() as session:
        names = targets.removed_before(session, context.at - kept)
    forgotten = 0
    for name in names:
        context.heartbeat()
        with contain_faults(name):
            forgotten += _delete(context, name)
    with context.dependencies.database.transaction() as session:
        dropped = targets.drop_installations(session, context.at - kept)
        for installation in dropped:
            response_cache.forget(session, str(installation))
    return TaskResult(f"{forgotten} repositories forgotten, {len(dropped)} installations")


def _delete(context: TaskContext, name: str) -> bool:
    """Whether it was forgotten; not where it came back while others were."""
    dependencies, kept = context.dependencies, context.dependencies.retention_policy.removed
    why = f"it was lost more than {kept.days} days ago"
    try:
        target_deletion.delete_target_data(
            dependencies.database,
            dependencies.data_dir,
            name,
            why,
            context.at,
            heartbeat=context.heartbeat,
            removed_before=context.at - kept,
        )
    except RefusalError as error:
        log.info("target_deletion.skipped", target=name, reason=str(error))
        return False
    return True
