"""Deletes outdated rows, and gives up effects for unwatched targets."""

from __future__ import annotations

from datetime import timedelta

from bot.store import retention, targets
from bot.targets.periodic_tasks import TaskContext, TaskResult, periodic_task

#: GitHub's limits count an hour; a day is kept for `assay status`.
RATE_USAGE_AGE = timedelta(days=1)
#: Unused responses are deleted after this time.
RESPONSE_AGE = timedelta(days=30)
#: Rows of one transaction, so that other writers get their turn.
BATCH_SIZE = 500
#: What reads the plan of a campaign after its end does so at once, such as the control case of a retest.
PLAN_AGE = timedelta(days=1)
#: A season: the ranking learns from what cases did lately, and few toolchains are in use for as long.
VERDICT_AGE = timedelta(days=90)


@periodic_task("cleanup", interval=timedelta(hours=1))
def delete_old_rows(context: TaskContext) -> TaskResult:
    """Deletes old deliveries, rate usage, cached responses and reports."""
    deleted: dict[str, int] = {}
    for name, prune, age in (
        ("deliveries", retention.deliveries, context.dependencies.retention_policy.deliveries),
        ("rate usage rows", retention.prune_rate_usage, RATE_USAGE_AGE),
        ("cached responses", retention.prune_responses, RESPONSE_AGE),
        ("planned cases that did not run", retention.prune_plans, PLAN_AGE),
        ("verdicts", retention.prune_verdicts, VERDICT_AGE),
    ):
        deleted[name] = _delete_batches(context, prune, age)
    deleted["reports"] = _delete_reports(context)
    with context.dependencies.database.transaction() as session:
        for target in targets.unwatched_with_effects(session):
            targets.stop_work(session, target.name, target.reason, context.at)
    summary = ", ".join(f"{count} {name}" for name, count in deleted.items() if count)
    return TaskResult(f"deleted: {summary}" if summary else "nothing to delete")


def _delete_reports(context: TaskContext) -> int:
    """Deletes the files of campaigns that ended long ago; their rows stay."""
    age, artifacts = context.dependencies.retention_policy.reports, context.dependencies.artifacts
    if age is None:
        return 0
    kept = artifacts.campaigns()
    with context.dependencies.database.reading() as session:
        outdated = retention.ended_campaigns(session, kept, context.at - age)
    for campaign in outdated:
        context.heartbeat()
        artifacts.delete([campaign])
    return len(outdated)


def _delete_batches(context: TaskContext, what: retention.Prune, age: timedelta) -> int:
    total = 0
    while True:
        context.heartbeat()
        with context.dependencies.database.transaction(durable=False) as session:
            count = what(session, context.at - age, BATCH_SIZE)
        total += count
        if count < BATCH_SIZE:
            return total
