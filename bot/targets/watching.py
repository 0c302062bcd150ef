"""How a target comes under watch and leaves it: its row, what is under way for it, and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from bot.reports.report import key
from bot.store import Session, audit, duties, jobs, moving, targets, withheld
from bot.store.models import Cause, Installation, Target, TargetState

#: The duty that reads the installations again (`bot.targets.duties.installations`).
INSTALLATIONS = "installations"
#: The kind of job that deletes git mirrors (`bot.jobs.kinds.mirrors`).
MIRRORS = "mirrors"

log = structlog.get_logger(__name__)


def recognise(session: Session, name: str, github_id: int | None, at: datetime) -> Target:
    """The target's row, locked, made if there is none.

    GitHub's id decides where it is told. Where the row has another name than the event, one of them is
    out of date: the row keeps its name, and GitHub is asked soon.
    """
    target = targets.of_github_id(session, github_id) if github_id is not None else None
    if target is None:
        target = _named(session, name, github_id, at)
    elif target.name != name:
        read_again(target)
    return target


def _named(session: Session, name: str, github_id: int | None, at: datetime) -> Target:
    target, new = targets.ensure(session, name)
    if target.github_id is not None and github_id is not None and target.github_id != github_id:
        parked = moving.park(session, name)
        why = f"{name} is another repository now; it was renamed, moved or deleted"
        audit.record(session, parked, moving.RENAMED, "target", why, at, evidence={"before": name})
        _leave_mirrors(session, parked, (name,), at)
        read_again(targets.ensure(session, parked)[0])
        target, new = targets.ensure(session, name)
    if target.github_id is None:
        target.github_id = github_id
    if new:
        audit.record(session, name, "watched", "target", "seen for the first time", at)
    return target


def rename(session: Session, target: Target, name: str, at: datetime) -> Target:
    """The target under its new name; all its rows follow, and GitHub is asked about it soon."""
    old = target.name
    changed = moving.move(session, old, name)
    log.info("target renamed", before=old, target=name, rows=sum(changed.values()))
    why = f"GitHub calls {old} {name} now"
    audit.record(session, name, moving.RENAMED, "target", why, at, evidence={"before": old, "rows": changed})
    if old.lower() != name.lower():
        _leave_mirrors(session, name, (old, name), at)
    moved = targets.lock(session, name)
    assert moved is not None
    read_again(moved)
    return moved


def _leave_mirrors(session: Session, target: str, names: Sequence[str], at: datetime) -> None:
    """Has the git mirrors under these names deleted: who has a name now is not to read what another left.

    No transaction waits for files. What is needed of them is fetched once more.
    """
    told = key(MIRRORS, *names, at.isoformat())
    jobs.ask(session, MIRRORS, target, told, at, arguments={"names": list(names)})


def leave(session: Session, target: Target, state: TargetState, reason: str, at: datetime) -> None:
    """Nothing more is tested or said for the target: its campaigns end, its effects are given up."""
    if target.state == state.value:
        return
    target.state, target.reason = state.value, reason
    lost = state in (TargetState.REMOVED, TargetState.GONE)
    target.removed_at = (target.removed_at or at) if lost else None
    ended = targets.stop(session, target.name, reason, at)
    log.info("target left", target=target.name, state=state.value, reason=reason, **ended)
    audit.record(session, target.name, state.value, "target", reason, at, evidence=ended)


def watch(session: Session, target: Target, why: str, at: datetime) -> None:
    """The target is under watch again; GitHub is asked soon how it is."""
    if target.state == TargetState.WATCHED.value:
        return
    before = target.state
    target.state, target.reason, target.removed_at = TargetState.WATCHED.value, "", None
    read_again(target)
    reopened = withheld.reopen(session, target.name, Cause.UNWATCHED, dropping=True)
    log.info("target watched", target=target.name, before=before, why=why)
    evidence = {"before": before, "effects": reopened}
    audit.record(session, target.name, "watched", "target", why, at, evidence=evidence)


def set_issues(session: Session, target: Target, has_issues: bool, at: datetime) -> None:
    """Whether the repository has issues; where it has none, ours are given up."""
    changed = target.has_issues != has_issues
    target.has_issues = has_issues
    if has_issues:
        # Those that GitHub refused between two looks, and nobody told us why, are sent after all.
        count = withheld.reopen(session, target.name, Cause.NO_ISSUES, dropping=changed)
        if changed or count:
            why = "issues are enabled again"
            audit.record(session, target.name, "enabled", "target", why, at, evidence={"effects": count})
        return
    reason = (
        f"issues are disabled in {target.name}; enable them in the repository's settings, or read the check"
    )
    count = withheld.give_up_issues(session, target.name, reason)
    if changed or count:
        audit.record(session, target.name, "disabled", "target", reason, at, evidence={"effects": count})


def set_archived(session: Session, target: Target, archived: bool, at: datetime) -> None:
    """Whether the repository is archived, which ends the watch until it is not."""
    if archived and target.state == TargetState.WATCHED.value:
        leave(session, target, TargetState.ARCHIVED, "it was archived, and so is read-only", at)
    elif not archived and target.state == TargetState.ARCHIVED.value:
        watch(session, target, "it is no longer archived", at)
    elif target.state == TargetState.WATCHED.value:
        _send_after_all(session, target, at)


def _send_after_all(session: Session, target: Target, at: datetime) -> None:
    """What GitHub refused because of the repository, which was in order again before we were told of it."""
    count = withheld.reopen(session, target.name, Cause.UNWATCHED, dropping=False)
    if count:
        why = "it takes again what it refused for a while"
        audit.record(session, target.name, "enabled", "target", why, at, evidence={"effects": count})


def has_news(target: Target, before: Mapping[str, int]) -> bool:
    """Whether we were told of the target since GitHub was asked: then its answer may be the older of the two.

    before   `bot.store.targets.told` from before the question
    """
    return target.told != before.get(target.known_as, 0)


def read_again(target: Target) -> None:
    """GitHub is asked about the target soon; what it answered before does not count.

    One that was never asked about stays new.
    """
    target.told += 1
    if target.reconciled_at is not None:
        target.reconciled_at = targets.LONG_AGO


def read_installation_again(session: Session, row: Installation) -> None:
    """GitHub is asked about the installation soon; what it answered before does not count."""
    row.told += 1
    duties.hurry(session, INSTALLATIONS)
