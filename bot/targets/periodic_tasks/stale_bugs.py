"""Closes stale bugs (`bot.bugs.stale_bugs`)."""

from __future__ import annotations

from datetime import timedelta

from bot.bugs import stale_bugs as rule
from bot.store import bugs
from bot.targets.periodic_tasks import TaskContext, TaskResult, contain_faults, periodic_task

#: Bugs of one transaction, so that other writers get their turn.
BATCH_SIZE = 100


@periodic_task("stale_bugs", interval=timedelta(days=1))
def close_stale_bugs(context: TaskContext) -> TaskResult:
    """Checks every bug that was not seen for a while."""
    last, closed = 0, 0
    while True:
        context.heartbeat()
        with context.dependencies.database.transaction() as session:
            quiet = bugs.unseen_since(session, context.at - rule.MIN_SILENCE, last, BATCH_SIZE)
            for bug in quiet:
                with contain_faults(f"bug {bug.id}"), session.begin_nested():
                    closed += rule.close_if_stale(session, bug, context.at)
            last = quiet[-1].id if quiet else last
        if len(quiet) < BATCH_SIZE:
            return TaskResult(f"{closed} stale bugs closed" if closed else "no stale bugs")
