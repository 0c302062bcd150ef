"""The job `check_run_action`: a button of a check run."""

from __future__ import annotations

from bot.jobs.job_context import JobContext
from bot.jobs.registry import Lane, job_kind
from bot.pulls import check_run_actions
from bot.store.pulls import CHECK_RUN_ACTION


@job_kind(CHECK_RUN_ACTION, Lane.QUICK, answers=False)
def press(job_context: JobContext) -> None:
    """Executes the press."""
    check_run_actions.run_action(job_context)
