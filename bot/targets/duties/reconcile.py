"""What webhooks missed is found by looking: each repository is asked about every few minutes.

What is found out becomes the intents that the webhooks would have become, with the same keys, so that it does
not matter which of the two comes first. Asking again for what has not changed costs nothing of GitHub's
limit (conditional requests).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.errors import InfrastructureError, RefusalError
from bot.github.answers import MissingError
from bot.github.limits import ThrottledError
from bot.store import targets
from bot.store.models import TargetState
from bot.targets import looking, polling, watching
from bot.targets.duties import Done, Work, duty

#: Where webhooks come: rust-lang's bors looks at its pull requests again as often.
HOOKED = timedelta(minutes=15)
#: Where none come, this is how people wait for us.
POLLED = timedelta(minutes=2)
HOOK_READ = timedelta(hours=1)
AT_ONCE = 200  # targets of one round; the rest is due still

log = structlog.get_logger(__name__)


@duty("reconcile", every=timedelta(seconds=30), asks=True)
def reconcile(work: Work) -> Done:
    """Looks at the repositories that were not looked at for longest."""
    _begin_watching(work)
    hook = _hook(work)
    looked, refused = 0, 0
    for name in _due(work, HOOKED if hook["there"] else POLLED):
        work.look()
        before = looking.told(work)
        try:
            _look(work, name, hooked=hook["there"])
            looked += 1
        except MissingError:
            _lost(work, name, before)
        except ThrottledError:
            _again(work, name)
            raise  # for everybody: the next round goes on with those that are left
        except (RefusalError, InfrastructureError) as error:
            refused += 1
            log.warning("a repository cannot be looked at", target=name, reason=str(error))
            _later(work, name, before)
    told = f", {refused} could not be" if refused else ""
    return Done(f"{looked} repositories looked at{told}", {"hook": hook})


def _hook(work: Work) -> dict[str, Any]:
    """Whether the App's webhooks are sent anywhere, asked once an hour."""
    known = work.memory.get("hook")
    if known and work.at - datetime.fromisoformat(known["at"]) < HOOK_READ:
        return dict(known)
    there = False
    if work.world.hub.is_app:
        with suppress(MissingError):
            there = bool(work.world.hub.hook_config().url)
    return {"there": there, "at": work.at.isoformat()}


def _begin_watching(work: Work) -> None:
    """The repositories that the operator names are targets, whether or not anything comes from them."""
    with work.world.database.reading() as session:
        new = [name for name in work.world.watch if targets.find_any_case(session, name) is None]
    for name in new:
        with work.world.database.transaction() as session:
            watching.recognise(session, name, None, work.at)


def _due(work: Work, every: timedelta) -> list[str]:
    at = work.world.clock()
    with work.world.database.reading() as session:
        hooked = targets.due(session, at - every, AT_ONCE, hooked=True)
        polled = targets.due(session, at - POLLED, AT_ONCE, hooked=False)
    return (polled + hooked)[:AT_ONCE]


def _look(work: Work, name: str, *, hooked: bool) -> None:
    with work.world.database.reading() as session:
        target = targets.find(session, name)
        if target is None:
            return  # forgotten meanwhile
        unheard = polling.unheard(session, target) if hooked else polling.EVENTS
    began, last = work.world.clock(), target.polled_at or target.reconciled_at
    name = looking.look(work, name)
    if not unheard:
        return
    if last is not None:
        polling.poll(work, name, last, unheard)
    _polled(work, name, began)


def _lost(work: Work, name: str, before: Mapping[str, int]) -> None:
    """GitHub answers that there is no such repository, to us at least; and nobody told us otherwise since."""
    with work.world.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or watching.has_news(target, before):
            return
        target.reconciled_at = work.world.clock()
        reason = "GitHub knows no such repository, or hides it from us"
        watching.leave(session, target, TargetState.GONE, reason, work.world.clock())


def _polled(work: Work, name: str, began: datetime) -> None:
    """All was heard that happened before: the next poll begins there, whatever became of other looks."""
    with work.world.database.transaction(durable=False) as session:
        target = targets.lock(session, name)
        if target is not None:
            target.polled_at = began


def _again(work: Work, name: str) -> None:
    with work.world.database.transaction() as session:
        target = targets.lock(session, name)
        if target is not None:
            watching.read_again(target)


def _later(work: Work, name: str, before: Mapping[str, int]) -> None:
    """It waits for its next turn: what is refused today would be refused at once again.

    Where somebody has asked for another look meanwhile, that is due all the same.
    """
    with work.world.database.transaction() as session:
        target = targets.lock(session, name)
        if target is None or watching.has_news(target, before):
            return
        if target.reconciled_at is not None:
            target.reconciled_at = work.world.clock()
