"""Repositories that are no longer ours to see are forgotten, a stated time after they were lost."""

from __future__ import annotations

from datetime import timedelta

import structlog

from bot.errors import RefusalError
from bot.store import answers, targets
from bot.targets import forgetting
from bot.targets.duties import Done, Work, duty

log = structlog.get_logger(__name__)


@duty("retention", every=timedelta(hours=6))
def retention(work: Work) -> Done:
    """Deletes what belongs to them."""
    kept = work.world.keeping.removed
    with work.world.database.reading() as session:
        names = targets.removed_before(session, work.at - kept)
    forgotten = 0
    for name in names:
        work.look()
        forgotten += _forget(work, name)
    with work.world.database.transaction() as session:
        dropped = targets.drop_installations(session, work.at - kept)
        for installation in dropped:
            answers.forget(session, str(installation))
    return Done(f"{forgotten} repositories forgotten, {len(dropped)} installations")


def _forget(work: Work, name: str) -> bool:
    """Whether it was forgotten; not where it came back while others were."""
    world, kept = work.world, work.world.keeping.removed
    why = f"it was lost more than {kept.days} days ago"
    try:
        forgetting.forget(
            world.database, world.data_dir, name, why, work.at, look=work.look, lost_before=work.at - kept
        )
    except RefusalError as error:
        log.info("a repository is not forgotten", target=name, reason=str(error))
        return False
    return True
