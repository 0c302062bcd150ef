"""Starts and stops watching a target: its row, its unfinished work, the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from bot.reports.report import idempotency_key
from bot.store import Session, audit, jobs, periodic_tasks, suppression, target_rename, targets
from bot.store.models import Installation, SuppressionCause, Target, TargetState

#: The task that reads the installations (`bot.targets.periodic_tasks.installations`).
INSTALLATIONS = "installations"
#: The kind of job that deletes git mirrors (`bot.targets.jobs.mirror_deletion`).
MIRRORS = "mirror_deletion"

log = structlog.get_logger(__name__)


def get_or_create(session: Session, name: str, github_id: int | None, at: datetime) -> Target:
    """The target's row, locked; created if there is none.

    GitHub's id identifies it, if given. If the event has another name, one of the two is outdated: the row
    keeps its name, and GitHub is read soon.
    """
    target = targets.of_github_id(session, github_id) if github_id is not None else None
    if target is None:
        target = _get_or_create_by_name(session, name, github_id, at)
    elif target.name != name:
        request_sync(target)
    return target


def _get_or_create_by_name(session: Session, name: str, github_id: int | None, at: datetime) -> Target:
    target, new = targets.ensure(session, name)
    if target.github_id is not None and github_id is not None and target.github_id != github_id:
        parked = target_rename.free_name(session, name)
        why = f"{name} is another repository now; it was renamed, moved or deleted"
        audit.record(session, parked, target_rename.RENAMED, "target", why, at, evidence={"before": name})
        _request_mirror_deletion(session, parked, (name,), at)
        request_sync(targets.ensure(session, parked)[0])
        target, new = targets.ensure(session, name)
    if target.github_id is None:
        target.github_id = github_id
    if new:
        audit.record(session, name, "watched", "target", "seen for the first time", at)
    return target


def rename(session: Session, target: Target, name: str, at: datetime) -> Target:
    """Renames the target; GitHub is read soon."""
    old = target.name
    target_rename.rename_target(session, old, name)
    log.info("target.renamed", before=old, target=name)
    why = f"{old} was renamed to {name}"
    audit.record(session, name, target_rename.RENAMED, "target", why, at, evidence={"before": old})
    if old.lower() != name.lower():
        _request_mirror_deletion(session, name, (old, name), at)
    moved = targets.lock(session, name)
    assert moved is not None
    request_sync(moved)
    return moved


def _request_mirror_deletion(session: Session, target: str, names: Sequence[str], at: datetime) -> None:
    """Enqueues the deletion of git mirrors, so that no repository reads another's."""
    key = idempotency_key(jobs.key_word(MIRRORS), *names, at.isoformat())
    jobs.enqueue(session, MIRRORS, target, key, at, arguments={"names": list(names)})


def stop_watching(session: Session, target: Target, state: TargetState, reason: str, at: datetime) -> None:
    """Stops watching: ends the target's campaigns and gives up its effects."""
    if target.state == state.value:
        return
    target.state, target.reason = state.value, reason
    lost = state in (TargetState.REMOVED, TargetState.GONE)
    target.removed_at = (target.removed_at or at) if lost else None
    ended = targets.stop_work(session, target.name, reason, at)
    log.info("target.unwatched", target=target.name, state=state.value, reason=reason, **ended)
    audit.record(session, target.name, state.value, "target", reason, at, evidence=ended)


def start_watching(session: Session, target: Target, why: str, at: datetime) -> None:
    """Watches the target again; GitHub is read soon."""
    if target.state == TargetState.WATCHED.value:
        return
    before = target.state
    target.state, target.reason, target.removed_at = TargetState.WATCHED.value, "", None
    request_sync(target)
    reopened = suppression.reactivate(session, target.name, SuppressionCause.UNWATCHED, drop_unsent=True)
    log.info("target.watched", target=target.name, before=before, why=why)
    evidence = {"before": before, "effects": reopened}
    audit.record(session, target.name, "watched", "target", why, at, evidence=evidence)


def set_issues(session: Session, target: Target, has_issues: bool, at: datetime) -> None:
    """Stores whether issues are enabled; gives up our unsent issues if they are not."""
    changed = target.has_issues != has_issues
    target.has_issues = has_issues
    if has_issues:
        # Includes issues that GitHub refused between two syncs.
        count = suppression.reactivate(session, target.name, SuppressionCause.NO_ISSUES, drop_unsent=changed)
        if changed or count:
            why = "issues are enabled again"
            audit.record(session, target.name, "enabled", "target", why, at, evidence={"effects": count})
        return
    reason = f"issues are disabled in {target.name}; enable them in its settings, or use the check run"
    count = suppression.fail_issues(session, target.name, reason)
    if changed or count:
        audit.record(session, target.name, "disabled", "target", reason, at, evidence={"effects": count})


def set_archived(session: Session, target: Target, archived: bool, at: datetime) -> None:
    """Stores whether the repository is archived; archived ones are not watched."""
    if archived and target.state == TargetState.WATCHED.value:
        stop_watching(session, target, TargetState.ARCHIVED, "the repository is archived", at)
    elif not archived and target.state == TargetState.ARCHIVED.value:
        start_watching(session, target, "the repository is no longer archived", at)
    elif target.state == TargetState.WATCHED.value:
        _reopen_refused_effects(session, target, at)


def _reopen_refused_effects(session: Session, target: Target, at: datetime) -> None:
    """Sends effects that GitHub refused while the repository was unavailable for a time."""
    count = suppression.reactivate(session, target.name, SuppressionCause.UNWATCHED, drop_unsent=False)
    if count:
        why = "the repository accepts effects again"
        audit.record(session, target.name, "enabled", "target", why, at, evidence={"effects": count})


def changed_since(target: Target, before: Mapping[str, int]) -> bool:
    """Whether an event about the target came after GitHub was read, so that the answer may be outdated.

    before  `bot.store.targets.event_count` before the request
    """
    return target.event_count != before.get(target.stable_name, 0)


def request_sync(target: Target) -> None:
    """Schedules a read of the target; earlier answers no longer count. A target never read stays new."""
    target.event_count += 1
    if target.reconciled_at is not None:
        target.reconciled_at = targets.LONG_AGO


def request_installation_sync(session: Session, row: Installation) -> None:
    """Schedules a read of the installation; earlier answers no longer count."""
    row.event_count += 1
    periodic_tasks.run_soon(session, INSTALLATIONS)
