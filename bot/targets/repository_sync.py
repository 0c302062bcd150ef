"""One look at a repository: what it is called, how it is set, where its branches and pull requests are."""

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
    """Brings the rows of a target to what GitHub says, and asks for what was missed; its present name.

    What is seen for the first time is taken as it is: nothing was missed before somebody watched.
    Raises what reading GitHub raises.
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
    """How often we were told of each target: what was asked before the next time is older."""
    with context.dependencies.database.reading() as session:
        return targets.event_count(session)


def _load_target(context: TaskContext, name: str) -> Target:
    with context.dependencies.database.reading() as session:
        target = targets.find(session, name)
    if target is None:
        raise NotFoundError(f"{name} was forgotten meanwhile")
    return target


def _mark_synced(context: TaskContext, name: str, before: int, began: datetime) -> None:
    """It was looked at for the first time, to the end; if nothing was told of it meanwhile."""
    with context.dependencies.database.transaction(durable=False) as session:
        target = targets.lock(session, name)
        if target is not None and target.event_count == before:
            target.reconciled_at = began


def _lock_if_unchanged(session: Session, target: Target) -> Target | None:
    """The target's row, locked, if it is watched still, and its name no other repository's."""
    row = targets.lock(session, target.name)
    if row is None or row.stable_name != target.stable_name or row.state != TargetState.WATCHED.value:
        return None
    return row


def _sync_settings(
    context: TaskContext, name: str, facts: RepositoryInfo, before: Mapping[str, int], began: datetime
) -> str:
    """Name, default branch, visibility, archive, issues; returns the name.

    From here on it counts as looked at, so that whatever wants another look meanwhile gets it. Where we were
    told of the repository since it was asked about, it is asked about again instead.
    """
    with context.dependencies.database.transaction(durable=False) as session:
        at = context.dependencies.clock()
        target = targets.of_github_id(session, facts.github_id) or targets.lock(session, name)
        if target is None:
            raise NotFoundError(f"{name} was forgotten meanwhile")
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
    """What the configuration on the default branch says, read once for each commit there."""
    if not target.default_branch:
        return
    try:
        head = context.dependencies.github_api.branch_head(target.name, target.default_branch)
    except NotFoundError:  # nothing was pushed yet
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
        if problem:  # what was right before holds; the campaign of that commit says what is wrong
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
            else:  # we were told of a push while GitHub was asked, whose answer may be older
                target_lifecycle.request_sync(row)


def _sync_branch(context: TaskContext, session: Session, row: Target, branch: str, commit: str) -> None:
    """Asks for the campaign of a push that nobody told us of."""
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
    why = f"a push to {branch} was missed and found by looking"
    audit.record(session, row.name, "found", f"branch:{branch}"[:80], why, at, evidence={"head": commit})


def _sync_pulls(context: TaskContext, target: Target, *, first: bool) -> None:
    """Asks for what happened to pull requests without our hearing of it."""
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
    """What happened to a pull request since its row was written, as the webhook's action; "" for nothing."""
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
    """Asks for what was missed of one; where we were told of it since GitHub was asked, nothing was.

    before   what was known of it when GitHub was asked, if it was known to be open
    """
    with context.dependencies.database.transaction(durable=False) as session:
        if first:  # it was there before anybody watched: what happens to it from now on counts
            pulls.insert_if_new(session, pulls.row(target.name, facts))
            return
        row = targets.pull(session, target.name, facts.number)
        if before is not None and (row is None or not pulls.has_same_data(row, before)):
            return
        action = find_missed_action(row, facts) or _find_retry_reason(session, row)
        if not action:
            return
        context.dependencies.handle_intent(session, _pull_intent(target, facts, action))
        why = f"missed and found by looking: {action}"
        at = context.dependencies.clock()
        audit.record(session, target.name, "found", f"pull:{facts.number}", why, at)
    log.info("missed_event.found", target=target.name, pull=facts.number, action=action)


def _find_retry_reason(session: Session, row: Pull | None) -> str:
    """Why an open pull request is looked at anew, "" if there is no need: nobody else would ever do it."""
    if (
        row is None
        or row.state != pulls.OPEN
        or not pulls.last_evaluation_failed(session, row.target, row.number)
    ):
        return ""
    return "it could not be looked at before"


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
