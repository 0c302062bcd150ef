"""The job `pull_evaluation`: evaluates a pull request."""

from __future__ import annotations

from bot.jobs.job_context import JobContext
from bot.jobs.registry import Lane, job_kind
from bot.pulls import pull_evaluation
from bot.store.pulls import EVALUATE_PULL


@job_kind(EVALUATE_PULL, Lane.QUICK, answers=False)
def pull(job_context: JobContext) -> None:
    """Evaluates it."""
    pull_evaluation.evaluate(job_context)
