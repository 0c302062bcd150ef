"""Starts the campaigns of `schedules`.

Due times are in our own rows (`Target.schedules`), computed by APScheduler's cron trigger; its own job store
pickles. Times missed while no process ran are caught up once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import structlog

from bot.errors import InfrastructureError, RefusalError
from bot.store import Session, audit, targets
from bot.store.models import Target, TargetState
from bot.targets import branch_heads, policy
from bot.targets.periodic_tasks import TaskContext, TaskResult, contain_faults, periodic_task
from bot.webhooks.intents import CampaignIntent

log = structlog.get_logger(__name__)


@periodic_task("schedules", interval=timedelta(seconds=30))
def start_scheduled_campaigns(context: TaskContext) -> TaskResult:
    """Starts the due campaigns."""
    started = 0
    for name in _list_due(context):
        context.heartbeat()
        with contain_faults(name):
            try:
                branch, head = _read_head(context, name)
            except (RefusalError, InfrastructureError) as error:
                log.warning("schedule.postponed", target=name, reason=str(error))
                continue
            started += _start_campaigns(context, name, branch, head)
    return TaskResult(f"{started} campaigns started")


def _list_due(context: TaskContext) -> list[str]:
    with context.dependencies.database.reading() as session:
        named = [(name, targets.find(session, name)) for name in targets.scheduled(session)]
    return [
        name
        for name, target in named
        if target is not None and any(policy.is_due(one, context.at) for one in target.schedules)
    ]


def _read_head(context: TaskContext, name: str) -> tuple[str, str]:
    """The default branch and its head, "" if unknown."""
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
    if target is None or not target.default_branch:
        return "", ""
    branch = target.default_branch
    if context.dependencies.github is not None:
        return branch, context.dependencies.github.branch_head(name, branch)
    return branch, str(target.heads.get(branch, {}).get("commit", ""))


def _start_campaigns(context: TaskContext, name: str, branch: str, head: str) -> int:
    """Starts the due campaigns of a target and sets their next times, in one transaction.

    If `branch` is no longer the default, they stay due for the next run.
    """
    with context.dependencies.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or target.state != TargetState.WATCHED.value:
            return 0
        if target.default_branch != branch:
            return 0
        due = [one for one in target.schedules if policy.is_due(one, context.at)]
        started = sum(_start_campaign(context, session, target, one, head) for one in due)
        target.schedules = [
            one | {"next": policy.next_time(one["cron"], context.at)} if one in due else one
            for one in target.schedules
        ]
    return started


def _start_campaign(
    context: TaskContext, session: Session, target: Target, schedule: dict[str, Any], head: str
) -> bool:
    """Starts a campaign, compared with the schedule's last; False if the head is the same or unknown."""
    trigger = f"schedule:{schedule['name']}"
    before = targets.last_tested(session, target.name, trigger)
    if not head or (before is not None and before.head == head):
        why = f"the head of {target.default_branch} was tested before" if head else "its head is unknown"
        audit.record(session, target.name, "skipped", trigger, why, context.at, evidence={"head": head})
        return False
    intent = CampaignIntent(
        target=target.name,
        github_id=target.github_id,
        installation=target.installation_id,
        head=head,
        base=before.head if before is not None else "",
        ref=f"{branch_heads.BRANCH_PREFIX}{target.default_branch}",
        trigger=trigger,
        overrides=policy.overrides(schedule),
    )
    context.dependencies.start(session, intent)
    return True
