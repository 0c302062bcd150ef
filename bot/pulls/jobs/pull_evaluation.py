"""`pull`: a pull request is looked at, and tested, or told why it is not."""

from __future__ import annotations

from bot.jobs.job_context import JobContext
from bot.jobs.registry import Lane, job_kind
from bot.pulls import pull_evaluation
from bot.store.pulls import EVALUATE_PULL


@job_kind(EVALUATE_PULL, Lane.QUICK, answers=False)
def pull(job_context: JobContext) -> None:
    """Looks at it."""
    pull_evaluation.evaluate(job_context)
