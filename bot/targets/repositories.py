"""What happens to a repository as a whole: renamed, given away, archived, deleted, set otherwise.

An event says how things were when it was sent. It is believed for now, and GitHub is asked soon.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bot.store import Session, now, targets
from bot.store.models import Target, TargetState
from bot.targets import target_lifecycle
from bot.webhooks.intents import Ignored, RepositoryIntent

DELETED = "the repository was deleted"


def handle(session: Session, intent: RepositoryIntent, clock: Callable[[], datetime] = now) -> Ignored | None:
    """Carries out what an event tells of a repository."""
    at = clock()
    target = _find_target(session, intent)
    if target is None:
        return Ignored(f"{intent.target} is not under watch")
    target_lifecycle.request_sync(target)
    if intent.action == "deleted":
        target_lifecycle.stop_watching(session, target, TargetState.GONE, DELETED, at)
        return None
    if intent.before:
        return _rename(session, target, intent, at)
    if target.name != intent.target:
        return Ignored(f"{intent.target} is called {target.name}, or was; GitHub is asked soon")
    target.default_branch = intent.default_branch or target.default_branch
    target.private = target.private or intent.private  # only GitHub itself makes it public: `repository_sync`
    target_lifecycle.set_issues(session, target, intent.has_issues, at)
    target_lifecycle.set_archived(session, target, intent.archived, at)
    return None


def _find_target(session: Session, intent: RepositoryIntent) -> Target | None:
    """The row of the repository, by its id, else by the name it had or has; one of another id is not it."""
    target = targets.of_github_id(session, intent.github_id)
    for name in (intent.before, intent.target):
        if target is None and name:
            named = targets.lock(session, name)
            target = named if named is not None and named.github_id is None else None
    if target is not None:
        target.github_id = intent.github_id
    return target


def _rename(session: Session, target: Target, intent: RepositoryIntent, at: datetime) -> Ignored | None:
    if target.name == intent.target:
        return Ignored(f"known as {intent.target} already")
    if target.name != intent.before:
        return Ignored(f"{intent.before} is called {target.name} since; GitHub is asked soon")
    target_lifecycle.rename(session, target, intent.target, at)
    return None
