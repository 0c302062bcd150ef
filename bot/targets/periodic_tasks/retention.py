"""Deletes the data of repositories some time after Assay lost access to them."""

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
    """Deletes the data of targets and installations that were removed long ago."""
    kept = context.dependencies.retention_policy.removed
    with context.dependencies.database.reading() as session:
        names = targets.removed_before(session, context.at - kept)
    deleted = 0
    for name in names:
        context.heartbeat()
        with contain_faults(name):
            deleted += _delete(context, name)
    with context.dependencies.database.transaction() as session:
        dropped = targets.drop_installations(session, context.at - kept)
        for installation in dropped:
            response_cache.forget(session, str(installation))
    return TaskResult(f"{deleted} repositories deleted, {len(dropped)} installations")


def _delete(context: TaskContext, name: str) -> bool:
    """Deletes a target; False if it was watched again meanwhile."""
    dependencies, kept = context.dependencies, context.dependencies.retention_policy.removed
    why = f"it was removed more than {kept.days} days ago"
    try:
        target_deletion.delete_target_data(
            dependencies.database,
            dependencies.data_dir,
            dependencies.artifacts,
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
