"""One look at a repository: what it is called, how it is set, where its branches and pull requests are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.errors import RefusalError, UsageError
from bot.github.answers import MissingError
from bot.github.facts import PullFacts, RepositoryFacts
from bot.store import Session, audit, pulls, targets
from bot.store.models import Pull, Target, TargetState
from bot.targets import heads, policy, watching
from bot.targets.duties import Work
from bot.webhooks.intents import CampaignIntent, PullIntent

log = structlog.get_logger(__name__)


def look(work: Work, name: str) -> str:
    """Brings the rows of a target to what GitHub says, and asks for what was missed; its present name.

    What is seen for the first time is taken as it is: nothing was missed before somebody watched.
    Raises what reading GitHub raises.
    """
    began, before = work.world.clock(), told(work)
    name = _settings(work, name, work.world.hub.repository(name), before, began)
    target = _target(work, name)
    first = target.reconciled_at is None
    if target.state == TargetState.WATCHED.value:
        _configuration(work, target)
        _branches(work, _target(work, name))
        _pulls(work, _target(work, name), first=first)
    if first:
        _mark(work, name, target.told, began)
    return name


def told(work: Work) -> dict[str, int]:
    """How often we were told of each target: what was asked before the next time is older."""
    with work.world.database.reading() as session:
        return targets.told(session)


def _target(work: Work, name: str) -> Target:
    with work.world.database.reading() as session:
        target = targets.find(session, name)
    if target is None:
        raise MissingError(f"{name} was forgotten meanwhile")
    return target


def _mark(work: Work, name: str, before: int, began: datetime) -> None:
    """It was looked at for the first time, to the end; if nothing was told of it meanwhile."""
    with work.world.database.transaction(durable=False) as session:
        target = targets.lock(session, name)
        if target is not None and target.told == before:
            target.reconciled_at = began


def _still(session: Session, target: Target) -> Target | None:
    """The target's row, locked, if it is watched still, and its name no other repository's."""
    row = targets.lock(session, target.name)
    if row is None or row.known_as != target.known_as or row.state != TargetState.WATCHED.value:
        return None
    return row


def _settings(
    work: Work, name: str, facts: RepositoryFacts, before: Mapping[str, int], began: datetime
) -> str:
    """Name, default branch, visibility, archive, issues; returns the name.

    From here on it counts as looked at, so that whatever wants another look meanwhile gets it. Where we were
    told of the repository since it was asked about, it is asked about again instead.
    """
    with work.world.database.transaction(durable=False) as session:
        at = work.world.clock()
        target = targets.of_github_id(session, facts.github_id) or targets.lock(session, name)
        if target is None:
            raise MissingError(f"{name} was forgotten meanwhile")
        if target.github_id not in (None, facts.github_id):
            target = watching.recognise(session, facts.full_name, facts.github_id, at)
        if watching.has_news(target, before):
            return target.name
        target.github_id = facts.github_id
        if target.name != facts.full_name:
            target = watching.rename(session, target, facts.full_name, at)
        target.default_branch, target.private = facts.default_branch, facts.private
        watching.set_issues(session, target, facts.has_issues, at)
        watching.set_archived(session, target, facts.archived, at)
        if target.reconciled_at is not None:
            target.reconciled_at = began
        return target.name


def _configuration(work: Work, target: Target) -> None:
    """What the configuration on the default branch says, read once for each commit there."""
    if not target.default_branch:
        return
    try:
        head = work.world.hub.branch_head(target.name, target.default_branch)
    except MissingError:  # nothing was pushed yet
        return
    if target.policy.get("commit") == head:
        return
    problem = ""
    try:
        config = work.world.configure(target.name, head)
    except UsageError as error:
        problem = str(error)
    except RefusalError as error:
        log.warning("the configuration cannot be read", target=target.name, reason=str(error))
        return
    with work.world.database.transaction(durable=False) as session:
        row = _still(session, target)
        if row is None:
            return
        if problem:  # what was right before holds; the campaign of that commit says what is wrong
            row.policy = dict(row.policy) | {"commit": head, "problem": problem}
            return
        row.policy = policy.policy(config, head)
        row.schedules = policy.schedules(config, row.schedules, work.world.clock())


def _branches(work: Work, target: Target) -> None:
    for branch in heads.watched(target):
        work.look()
        try:
            commit = work.world.hub.branch_head(target.name, branch)
        except MissingError:
            continue
        with work.world.database.transaction(durable=False) as session:
            row = _still(session, target)
            if row is None:
                return
            if row.heads.get(branch) == target.heads.get(branch):
                _branch(work, session, row, branch, commit)
            else:  # we were told of a push while GitHub was asked, whose answer may be older
                watching.read_again(row)


def _branch(work: Work, session: Session, row: Target, branch: str, commit: str) -> None:
    """Asks for the campaign of a push that nobody told us of."""
    at = work.world.clock()
    known: Mapping[str, Any] | None = row.heads.get(branch)
    heads.remember(row, branch, commit, at)
    if known is None or known["commit"] == commit:
        return
    intent = CampaignIntent(
        target=row.name,
        github_id=row.github_id,
        installation=row.installation_id,
        head=commit,
        base=known["commit"],
        ref=f"{heads.BRANCH}{branch}",
        trigger="push",
    )
    work.world.start(session, intent)
    why = f"a push to {branch} was missed and found by looking"
    audit.record(session, row.name, "found", f"branch:{branch}"[:80], why, at, evidence={"head": commit})


def _pulls(work: Work, target: Target, *, first: bool) -> None:
    """Asks for what happened to pull requests without our hearing of it."""
    with work.world.database.reading() as session:
        before = targets.open_pulls(session, target.name)
    now_open = {facts.number: facts for facts in work.world.hub.pulls(target.name)}
    for number in sorted(set(before) - set(now_open)):
        work.look()
        try:
            now_open[number] = work.world.hub.pull(target.name, number)
        except MissingError:
            continue
    for number, facts in sorted(now_open.items()):
        _pull(work, target, facts, before.get(number), first=first)


def missed(row: Pull | None, facts: PullFacts) -> str:
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


def _pull(work: Work, target: Target, facts: PullFacts, before: Pull | None, *, first: bool) -> None:
    """Asks for what was missed of one; where we were told of it since GitHub was asked, nothing was.

    before   what was known of it when GitHub was asked, if it was known to be open
    """
    with work.world.database.transaction(durable=False) as session:
        if first:  # it was there before anybody watched: what happens to it from now on counts
            pulls.note(session, pulls.row(target.name, facts))
            return
        row = targets.pull(session, target.name, facts.number)
        if before is not None and (row is None or not pulls.alike(row, before)):
            return
        action = missed(row, facts) or _in_vain(session, row)
        if not action:
            return
        work.world.carry_out(session, _intent(target, facts, action))
        why = f"missed and found by looking: {action}"
        at = work.world.clock()
        audit.record(session, target.name, "found", f"pull:{facts.number}", why, at)
    log.info("missed event found", target=target.name, pull=facts.number, action=action)


def _in_vain(session: Session, row: Pull | None) -> str:
    """Why an open pull request is looked at anew, "" if there is no need: nobody else would ever do it."""
    if row is None or row.state != pulls.OPEN or not pulls.gave_up(session, row.target, row.number):
        return ""
    return "it could not be looked at before"


def _intent(target: Target, facts: PullFacts, action: str) -> PullIntent:
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
