"""Repositories that are no longer ours to see are forgotten, a stated time after they were lost."""

from __future__ import annotations

from datetime import timedelta

from bot.store import answers, targets
from bot.targets import forgetting
from bot.targets.duties import Done, Work, duty


@duty("retention", every=timedelta(hours=6))
def retention(work: Work) -> Done:
    """Deletes what belongs to them."""
    kept = work.world.keeping.removed
    with work.world.database.reading() as session:
        names = targets.removed_before(session, work.at - kept)
    for name in names:
        work.look()
        forgetting.forget(
            work.world.database,
            work.world.data_dir,
            name,
            f"it was lost more than {kept.days} days ago",
            work.at,
            look=work.look,
        )
    with work.world.database.transaction() as session:
        dropped = targets.drop_installations(session, work.at - kept)
        for installation in dropped:
            answers.forget(session, str(installation))
    return Done(f"{len(names)} repositories forgotten, {len(dropped)} installations")
