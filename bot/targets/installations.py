"""Applies events about installations of the App.

A removed installation never returns, because installing the App again creates another id. So `deleted` counts
whenever it arrives; of other events the newest counts, and GitHub is read soon anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bot.store import Session, now, targets
from bot.store.models import Installation, Target, TargetState
from bot.targets import target_lifecycle
from bot.webhooks.intents import Ignored, InstallationIntent, RepositoryRef

UNINSTALLED = "the GitHub App was uninstalled"
SUSPENDED = "the GitHub App is suspended"
DESELECTED = "the repository was removed from the GitHub App's installation"
_LISTS = ("added", "removed")


def handle(
    session: Session, intent: InstallationIntent, clock: Callable[[], datetime] = now
) -> Ignored | None:
    """Applies an event about an installation."""
    at = clock()
    row, new = targets.ensure_installation(session, intent.id, intent.account, targets.LONG_AGO)
    target_lifecycle.request_installation_sync(session, row)
    if intent.action == "deleted":
        remove_installation(session, row, at)
        return None
    if row.state == TargetState.REMOVED.value:
        return Ignored(f"installation {intent.id} was removed")
    if intent.action == "renamed":
        _rename(session, row, intent, at)
        return None
    if intent.action in _LISTS:
        _apply_lists(session, row, intent, at)
        return None
    if not new and intent.updated_at is not None and intent.updated_at < row.changed_at:
        return Ignored(f"installation {intent.id} has changed since")
    row.changed_at = intent.updated_at or row.changed_at
    row.account, row.permissions, row.events = intent.account, dict(intent.permissions), list(intent.events)
    set_suspended(session, row, intent.action == "suspend", at)
    _apply_lists(session, row, intent, at)
    return None


def attach_repository(session: Session, named: RepositoryRef, installation_id: int, at: datetime) -> Target:
    """Assigns a repository to the installation and watches it."""
    target = target_lifecycle.get_or_create(session, named.name, named.github_id, at)
    target.private = target.private or named.private
    target.installation_id = installation_id
    if target.state in (TargetState.REMOVED.value, TargetState.GONE.value):
        target_lifecycle.start_watching(session, target, "the GitHub App is installed there again", at)
    return target


def remove_installation(session: Session, row: Installation, at: datetime) -> None:
    """Removes the installation and stops watching its repositories."""
    row.state, row.changed_at = TargetState.REMOVED.value, max(row.changed_at, at)
    for target in targets.of_installation(session, row.id):
        target_lifecycle.stop_watching(session, target, TargetState.REMOVED, UNINSTALLED, at)


def set_suspended(session: Session, row: Installation, suspended: bool, at: datetime) -> None:
    """Suspends the installation, or resumes it."""
    row.state = (TargetState.SUSPENDED if suspended else TargetState.WATCHED).value
    for target in targets.of_installation(session, row.id):
        if suspended and target.state in (TargetState.WATCHED.value, TargetState.ARCHIVED.value):
            target_lifecycle.stop_watching(session, target, TargetState.SUSPENDED, SUSPENDED, at)
        elif not suspended and target.state == TargetState.SUSPENDED.value:
            target_lifecycle.start_watching(session, target, "the GitHub App is no longer suspended", at)


def detach_repository(session: Session, target: Target, at: datetime) -> None:
    """Stops watching a repository that was taken from the installation."""
    target_lifecycle.stop_watching(session, target, TargetState.REMOVED, DESELECTED, at)


def _apply_lists(session: Session, row: Installation, intent: InstallationIntent, at: datetime) -> None:
    for named in intent.added:
        target = attach_repository(session, named, row.id, at)
        if row.state == TargetState.SUSPENDED.value:
            target_lifecycle.stop_watching(session, target, TargetState.SUSPENDED, SUSPENDED, at)
    for named in intent.removed:
        gone = targets.of_github_id(session, named.github_id) or targets.lock(session, named.name)
        if gone is not None and gone.installation_id == row.id:
            detach_repository(session, gone, at)


def _rename(session: Session, row: Installation, intent: InstallationIntent, at: datetime) -> None:
    row.account = intent.account
    for target in targets.of_owner(session, intent.before):
        if target.installation_id == row.id:
            name = target.name.partition("/")[2]
            target_lifecycle.rename(session, target, f"{intent.account}/{name}", at)
