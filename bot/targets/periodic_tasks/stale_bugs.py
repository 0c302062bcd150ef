"""Bugs that nothing shows any more are put away, once a long silence and their programs agree."""

from __future__ import annotations

from datetime import timedelta

from bot.bugs import stale_bugs as rule
from bot.store import bugs
from bot.targets.periodic_tasks import TaskContext, TaskResult, periodic_task

#: Bugs looked at in one transaction: others want to write, too.
BATCH_SIZE = 100


@periodic_task("stale_bugs", interval=timedelta(days=1))
def close_stale_bugs(context: TaskContext) -> TaskResult:
    """Looks at every bug that was not seen for a while."""
    last, away = 0, 0
    while True:
        context.heartbeat()
        with context.dependencies.database.transaction() as session:
            quiet = bugs.unseen_since(session, context.at - rule.MIN_SILENCE, last, BATCH_SIZE)
            away += sum(rule.close_if_stale(session, bug, context.at) for bug in quiet)
            last = quiet[-1].id if quiet else last
        if len(quiet) < BATCH_SIZE:
            return TaskResult(f"{away} bugs put away" if away else "nothing to put away")
