"""The job `mirror_deletion`: deletes the git mirrors of renamed repositories."""

from __future__ import annotations

from bot.github.mirrors import delete_mirror
from bot.jobs.job_context import JobContext
from bot.jobs.registry import Lane, job_kind
from bot.targets.target_lifecycle import MIRRORS


@job_kind(MIRRORS, Lane.QUICK, answers=False)
def mirrors(job_context: JobContext) -> None:
    """Deletes each once it is unused. Raises InfrastructureError if a file cannot be deleted."""
    root = job_context.settings.data_dir / "git"
    gone = [name for name in job_context.job_spec.arguments["names"] if delete_mirror(root, str(name))]
    with job_context.transaction() as (session, job):
        job_context.done(session, job, f"deleted: {', '.join(gone)}" if gone else "no mirrors found")
