"""Removes toolchains that are not used: `bot.toolchains.collection`, as `assay toolchains gc` does."""

from __future__ import annotations

from datetime import timedelta

from bot.store import campaigns
from bot.targets.periodic_tasks import TaskContext, TaskResult, periodic_task
from bot.toolchains.collection import collect


@periodic_task("toolchains", interval=timedelta(hours=1))
def remove_unused(context: TaskContext) -> TaskResult:
    """Keeps the cache below its limits; those in use stay."""
    dependencies = context.dependencies
    policy, removed, freed = dependencies.retention_policy, 0, 0
    with dependencies.database.reading() as session:
        running = campaigns.toolchains_in_use(session)  # a campaign goes on after a restart without a lock
    found = collect(
        dependencies.data_dir / "toolchains",
        policy.toolchain_bytes,
        policy.toolchains.total_seconds(),
        dry_run=False,
        keep=running,
    )
    for one in found:
        removed += 1
        freed += one.size
        context.heartbeat()
    return TaskResult(f"{removed} toolchains removed, {freed / (1 << 30):.1f} GiB" if removed else "nothing")
