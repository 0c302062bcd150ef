"""The installations are read again: webhooks about them come late, in any order, or not at all.

A webhook may also come between GitHub's answer and our writing it down. Then the answer is the older of the
two and does not count, for the installation or the repository that it told of; this duty is due again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from bot.github.answers import MissingError
from bot.github.facts import InstallationFacts, RepositoryFacts
from bot.store import Session, duties, targets
from bot.store.models import Target, TargetState
from bot.targets import installations as rows
from bot.targets import watching
from bot.targets.duties import Done, Work, duty
from bot.webhooks.intents import Named


# rust-lang's bors reads permissions again every 15 minutes.
@duty(watching.INSTALLATIONS, every=timedelta(minutes=15), as_app=True)
def installations(work: Work) -> Done:
    """Brings the rows to what GitHub says: which there are, what they allow, which repositories they see."""
    before = _told(work)
    found = {one.id: one for one in work.world.hub.installations()}
    _end_others(work, set(found), before)
    repositories = 0
    for facts in found.values():
        work.look()
        _refresh(work, facts, before.get(facts.id, 0))
        if not facts.suspended:  # a suspended one answers nothing
            repositories += _refresh_repositories(work, facts.id)
    return Done(f"{len(found)} installations, {repositories} repositories")


def _told(work: Work) -> dict[int, int]:
    """How often we were told of each installation."""
    with work.world.database.reading() as session:
        return {row.id: row.told for row in targets.installations(session)}


def _end_others(work: Work, there: set[int], before: Mapping[int, int]) -> None:
    """Those that GitHub does not name any more were removed."""
    with work.world.database.transaction() as session:
        for one in sorted(set(before) - there):
            row = targets.lock_installation(session, one)
            if row is not None and row.state != TargetState.REMOVED.value and row.told == before[one]:
                rows.remove(session, row, work.world.clock())


def _refresh(work: Work, facts: InstallationFacts, before: int) -> None:
    with work.world.database.transaction() as session:
        at = work.world.clock()
        row, _ = targets.ensure_installation(session, facts.id, facts.account, at)
        if row.state == TargetState.REMOVED.value or row.told != before:
            return
        row.account, row.permissions, row.events = (
            facts.account,
            dict(facts.permissions),
            list(facts.events),
        )
        rows.suspend(session, row, facts.suspended, at)


def _refresh_repositories(work: Work, installation: int) -> int:
    before = _told(work).get(installation, 0)
    with work.world.database.reading() as session:
        told = targets.told(session)
    try:
        listed = work.world.hub.installation_repositories(installation)
    except MissingError:
        return 0  # removed between the two questions; the next time tells
    with work.world.database.transaction() as session:
        at = work.world.clock()
        row = targets.lock_installation(session, installation)
        if row is None or row.state == TargetState.REMOVED.value or row.told != before:
            return 0
        for facts in listed:
            known = targets.of_github_id(session, facts.github_id)
            if known is not None and _is_overtaken(session, known, told):
                continue
            target = rows.adopt(session, _named(facts), installation, at)
            if target.name != facts.full_name:
                watching.rename(session, target, facts.full_name, at)
        seen = {facts.github_id for facts in listed}
        for target in targets.of_installation(session, installation):
            listless = target.github_id is not None and target.github_id not in seen
            if listless and not _is_overtaken(session, target, told):
                rows.drop(session, target, at)
    return len(listed)


def _is_overtaken(session: Session, target: Target, told: Mapping[str, int]) -> bool:
    """Whether we were told of the repository since the list was asked for, which then is asked for again."""
    if not watching.has_news(target, told):
        return False
    duties.hurry(session, watching.INSTALLATIONS)
    return True


def _named(facts: RepositoryFacts) -> Named:
    return Named(name=facts.full_name, github_id=facts.github_id, private=facts.private)
