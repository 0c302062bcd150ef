"""`mirrors`: the git mirrors under names that have changed hands are deleted."""

from __future__ import annotations

from bot.github.mirrors import delete_mirror
from bot.jobs.doing import Doing
from bot.jobs.registry import Lane, kind
from bot.targets.watching import MIRRORS


@kind(MIRRORS, Lane.QUICK, answers=False)
def mirrors(doing: Doing) -> None:
    """Deletes them, each once nobody uses it. Raises InfrastructureError where a file cannot be deleted."""
    root = doing.settings.data_dir / "git"
    gone = [name for name in doing.errand.arguments["names"] if delete_mirror(root, str(name))]
    with doing.transaction() as (session, job):
        doing.done(session, job, f"deleted: {', '.join(gone)}" if gone else "there were none")
