"""Reads a repository from GitHub: name, settings, configuration, branches, pull requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.errors import RefusalError, UsageError
from bot.github.resources import PullInfo, RepositoryInfo
from bot.github.responses import NotFoundError
from bot.store import Session, audit, pulls, targets
from bot.store.models import Pull, Target, TargetState
from bot.targets import branch_heads, policy, target_lifecycle
from bot.targets.periodic_tasks import TaskContext
from bot.webhooks.intents import CampaignIntent, PullIntent

log = structlog.get_logger(__name__)


def sync_repository(context: TaskContext, name: str) -> str:
    """Updates the rows of a target from GitHub and handles missed events; returns its present name.

    The first run stores the present state without events. Raises as the reader does.
    """
    began, before = context.dependencies.clock(), read_event_counts(context)
    name = _sync_settings(context, name, context.dependencies.github_api.repository(name), before, began)
    target = _load_target(context, name)
    first = target.reconciled_at is None
    if target.state == TargetState.WATCHED.value:
        _sync_config(context, target)
        _sync_branches(context, _load_target(context, name))
        _sync_pulls(context, _load_target(context, name), first=first)
    if first:
        _mark_synced(context, name, target.event_count, began)
    return name


def read_event_counts(context: TaskContext) -> dict[str, int]:
    """The number of events of each target; an answer read before the next event is outdated."""
    with context.dependencies.database.reading() as session:
        return targets.event_count(session)


def _load_target(context: TaskContext, name: str) -> Target:
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
    if target is None:
        raise NotFoundError(f"{name} was deleted meanwhile")
    return target


def _mark_synced(context: TaskContext, name: str, before: int, began: datetime) -> None:
    """Marks the first run as complete, unless an event came meanwhile."""
    with context.dependencies.database.transaction(durable=False) as session:
        target = targets.lock(session, name)
        if target is not None and target.event_count == before:
            target.reconciled_at = began


def _lock_if_unchanged(session: Session, target: Target) -> Target | None:
    """The target's row, locked; None if it is no longer watched or its name is another repository's."""
    row = targets.lock(session, target.name)
    if row is None or row.stable_name != target.stable_name or row.state != TargetState.WATCHED.value:
        return None
    return row


def _sync_settings(
    context: TaskContext, name: str, facts: RepositoryInfo, before: Mapping[str, int], began: datetime
) -> str:
    """Stores name, default branch, visibility, archive state and issues; returns the name.

    Marks the target as read first, so a request for another run during this one counts. Ignores the answer
    if an event came meanwhile.
    """
    with context.dependencies.database.transaction(durable=False) as session:
        at = context.dependencies.clock()
        target = targets.of_github_id(session, facts.github_id) or targets.lock(session, name)
        if target is None:
            raise NotFoundError(f"{name} was deleted meanwhile")
        if target.github_id not in (None, facts.github_id):
            target = target_lifecycle.get_or_create(session, facts.full_name, facts.github_id, at)
        if target_lifecycle.changed_since(target, before):
            return target.name
        target.github_id = facts.github_id
        if target.name != facts.full_name:
            target = target_lifecycle.rename(session, target, facts.full_name, at)
        target.default_branch, target.private = facts.default_branch, facts.private
        target_lifecycle.set_issues(session, target, facts.has_issues, at)
        target_lifecycle.set_archived(session, target, facts.archived, at)
        if target.reconciled_at is not None:
            target.reconciled_at = began
        return target.name


def _sync_config(context: TaskContext, target: Target) -> None:
    """Reads the configuration of the default branch, once for each head."""
    if not target.default_branch:
        return
    try:
        head = context.dependencies.github_api.branch_head(target.name, target.default_branch)
    except NotFoundError:  # an empty repository
        return
    if target.policy.get("commit") == head:
        return
    problem = ""
    try:
        config = context.dependencies.load_config(target.name, head)
    except UsageError as error:
        problem = str(error)
    except RefusalError as error:
        log.warning("configuration.unreadable", target=target.name, reason=str(error))
        return
    with context.dependencies.database.transaction(durable=False) as session:
        row = _lock_if_unchanged(session, target)
        if row is None:
            return
        if problem:  # the last valid policy stays; that commit's campaign reports the mistakes
            row.policy = dict(row.policy) | {"commit": head, "problem": problem}
            return
        row.policy = policy.build_policy(config, head)
        row.schedules = policy.build_schedules(config, row.schedules, context.dependencies.clock())


def _sync_branches(context: TaskContext, target: Target) -> None:
    for branch in branch_heads.list_watched(target):
        context.heartbeat()
        try:
            commit = context.dependencies.github_api.branch_head(target.name, branch)
        except NotFoundError:
            continue
        with context.dependencies.database.transaction(durable=False) as session:
            row = _lock_if_unchanged(session, target)
            if row is None:
                return
            if row.heads.get(branch) == target.heads.get(branch):
                _sync_branch(context, session, row, branch, commit)
            else:  # a push arrived meanwhile; the answer may be older
                target_lifecycle.request_sync(row)


def _sync_branch(context: TaskContext, session: Session, row: Target, branch: str, commit: str) -> None:
    """Starts the campaign of a missed push."""
    at = context.dependencies.clock()
    known: Mapping[str, Any] | None = row.heads.get(branch)
    branch_heads.record_head(row, branch, commit, at)
    if known is None or known["commit"] == commit:
        return
    intent = CampaignIntent(
        target=row.name,
        github_id=row.github_id,
        installation=row.installation_id,
        head=commit,
        base=known["commit"],
        ref=f"{branch_heads.BRANCH_PREFIX}{branch}",
        trigger="push",
    )
    context.dependencies.start(session, intent)
    why = f"a missed push to {branch} was found by reconciliation"
    audit.record(session, row.name, "found", f"branch:{branch}"[:80], why, at, evidence={"head": commit})


def _sync_pulls(context: TaskContext, target: Target, *, first: bool) -> None:
    """Handles missed events of pull requests."""
    with context.dependencies.database.reading() as session:
        before = targets.open_pulls(session, target.name)
    now_open = {facts.number: facts for facts in context.dependencies.github_api.pulls(target.name)}
    for number in sorted(set(before) - set(now_open)):
        context.heartbeat()
        try:
            now_open[number] = context.dependencies.github_api.pull(target.name, number)
        except NotFoundError:
            continue
    for number, facts in sorted(now_open.items()):
        _sync_pull(context, target, facts, before.get(number), first=first)


def find_missed_action(row: Pull | None, facts: PullInfo) -> str:
    """The missed action of a pull request, as a webhook names it; "" for none."""
    if row is None:
        return "opened" if facts.state == "open" else ""
    if facts.updated_at < row.updated_at:
        return ""
    if facts.state != row.state:
        return "reopened" if facts.state == "open" else "closed"
    if facts.state != "open":
        return ""
    if facts.head != row.head:
        return "synchronize"
    if facts.base_ref != row.base_ref:
        return "edited"
    if facts.draft != row.draft:
        return "converted_to_draft" if facts.draft else "ready_for_review"
    return ""


def _sync_pull(
    context: TaskContext, target: Target, facts: PullInfo, before: Pull | None, *, first: bool
) -> None:
    """Handles the missed events of one pull request, unless an event came after GitHub was read.

    before  its row when GitHub was read, if it was open
    """
    with context.dependencies.database.transaction(durable=False) as session:
        if first:  # it was there before the target was watched: only later events count
            pulls.insert_if_new(session, pulls.row(target.name, facts))
            return
        row = targets.pull(session, target.name, facts.number)
        if before is not None and (row is None or not pulls.has_same_data(row, before)):
            return
        action = find_missed_action(row, facts) or _find_retry_reason(session, row)
        if not action:
            return
        context.dependencies.handle_intent(session, _pull_intent(target, facts, action))
        why = f"missed event found by reconciliation: {action}"
        at = context.dependencies.clock()
        audit.record(session, target.name, "found", f"pull:{facts.number}", why, at)
    log.info("missed_event.found", target=target.name, pull=facts.number, action=action)


def _find_retry_reason(session: Session, row: Pull | None) -> str:
    """Why an open pull request is evaluated again, "" for none: its last evaluation failed."""
    if (
        row is None
        or row.state != pulls.OPEN
        or not pulls.last_evaluation_failed(session, row.target, row.number)
    ):
        return ""
    return "its last evaluation failed"


def _pull_intent(target: Target, facts: PullInfo, action: str) -> PullIntent:
    return PullIntent(
        target=target.name,
        github_id=target.github_id,
        installation=target.installation_id,
        number=facts.number,
        action=action,
        head=facts.head,
        base=facts.base,
        base_ref=facts.base_ref,
        head_repository=facts.head_repository,
        author=facts.author,
        association=facts.association,
        draft=facts.draft,
        state=facts.state,
        updated_at=facts.updated_at,
    )
