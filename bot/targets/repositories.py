"""Applies events about a whole repository: renamed, transferred, archived, deleted, other settings.

An event describes the time it was sent. It is applied, and GitHub is read soon after.
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
    """Applies an event about a repository."""
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
        return Ignored(f"{intent.target} is stored as {target.name}; GitHub is read soon")
    target.default_branch = intent.default_branch or target.default_branch
    target.private = target.private or intent.private  # only GitHub itself makes it public: `repository_sync`
    target_lifecycle.set_issues(session, target, intent.has_issues, at)
    target_lifecycle.set_archived(session, target, intent.archived, at)
    return None


def _find_target(session: Session, intent: RepositoryIntent) -> Target | None:
    """The row of the repository, by its id, else by its old or new name if that row has no id."""
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
        return Ignored(f"already stored as {intent.target}")
    if target.name != intent.before:
        return Ignored(f"{intent.before} was renamed to {target.name} since; GitHub is read soon")
    target_lifecycle.rename(session, target, intent.target, at)
    return None
