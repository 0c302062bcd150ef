"""A pull request is looked at: re-read, judged, and made a campaign, or a word why there is none.

Everything that is asked of GitHub or git is asked before the transaction that writes. If the pull request has
moved meanwhile, that transaction writes nothing: most moves have set the job going again, and for the others
it is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.campaigns import intents
from bot.campaigns.attend import attend
from bot.errors import RefusalError, UsageError
from bot.jobs.doing import Doing
from bot.pulls import intake
from bot.pulls.deciding import BROKEN, LEAVE, TEST, WAIT, Decider, Decision
from bot.pulls.forge import Forge
from bot.reports import underway
from bot.reports.pull import unreadable, waiting
from bot.store import Database, Session, audit, jobs, outbox, pulls, targets
from bot.store.models import Campaign, CampaignState, Job, JobState, Pull
from bot.store.outbox import Draft
from bot.store.pulls import OPEN
from bot.webhooks.intents import CampaignIntent

log = structlog.get_logger(__name__)


def look(doing: Doing) -> None:
    """Does what is to be done about one. Raises InfrastructureError where it is worth trying again."""
    errand, at = doing.errand, doing.services.clock.now()
    number = int(errand.arguments["number"])
    try:
        told = attend(doing, lambda *_: _told(doing.forge, errand.target, number))
        pull = _kept(doing, told, number, at)
        decision = attend(doing, lambda *_: _decided(doing, pull))
    except (RefusalError, UsageError) as error:
        pull, decision = None, Decision(LEAVE, str(error))
    with doing.transaction() as (session, job):
        known = pulls.get(session, errand.target, number)
        if pull is not None and (known is None or not _same(pull, known)):
            jobs.release(job)
            return
        if known is None:
            jobs.settle(job, JobState.DONE, decision.why, {}, at)
            return
        done = _carry_out(session, doing, known, decision, at)
        _audit(session, job, known, decision, at)
        result = {"what": decision.what, "head": known.head, "why": decision.why} | done
        jobs.settle(job, JobState.DONE, decision.why, result, at)
    log.info("pull_looked_at", target=errand.target, pull=number, what=decision.what, why=decision.why)


def refresh(database: Database, forge: Forge | None, target: str, number: int, at: datetime) -> Pull | None:
    """The pull request as GitHub tells it now, kept; what is known of it where GitHub cannot be asked.

    What nobody had told us of it is followed as if a webhook had: no later one will.
    """
    with database.reading() as session:
        before = pulls.get(session, target, number)
    told = _told(forge, target, number)
    if told is not None:
        with database.transaction() as session:
            known = pulls.get(session, target, number)
            if before is None or (known is not None and pulls.alike(known, before)):
                _heard(session, told, at)
    with database.reading() as session:
        return pulls.get(session, target, number)


def _heard(session: Session, told: Pull, at: datetime) -> None:
    known = pulls.get(session, told.target, told.number)
    if known is None or pulls.has_news(told, known):
        intake.follow(session, told, at)
    else:
        intake.remembered(session, told, at)


def _told(forge: Forge | None, target: str, number: int) -> Pull | None:
    """What GitHub says, None where it cannot be asked."""
    return None if forge is None else pulls.row(target, forge.pull(target, number))


def _kept(doing: Doing, told: Pull | None, number: int, at: datetime) -> Pull | None:
    """The row, brought up to date; not if we were told of it since GitHub was asked, which ends this turn."""
    with doing.transaction() as (session, job):
        if told is not None and told.target == job.target:
            known = intake.remembered(session, told, at)
            if not known.stale and known.pull.state != OPEN:
                intake.close(session, known.pull, at)
        return pulls.get(session, job.target, number)


def _decided(doing: Doing, pull: Pull | None) -> Decision:
    if pull is None or pull.state != OPEN:
        return Decision(LEAVE, f"it is {pull.state}" if pull else "nothing is known of it")
    if pull.stopped_head == pull.head:
        return Decision(LEAVE, f"commit {pull.head[:12]} was stopped; `/assay run` has it tested")
    return Decider(doing.services.repositories, doing.forge).decide(pull)


def _carry_out(
    session: Session, doing: Doing, pull: Pull, decision: Decision, at: datetime
) -> dict[str, Any]:
    """Writes the campaign or the check run; returns what the job keeps."""
    intake.end(session, pull, intake.overtaken_by(pull), at, sparing=pull.head)
    if decision.what == TEST:
        return {"campaign": _test(session, doing, pull, decision, at)}
    if decision.what == WAIT:
        known_as = targets.known_as(session, pull.target)
        _post(session, waiting(known_as, pull, decision.why), decision, at)
    elif decision.what == BROKEN and decision.audible:
        known_as = targets.known_as(session, pull.target)
        _post(session, unreadable(known_as, pull, decision.why), decision, at)
    return {}


def _post(session: Session, draft: Draft, decision: Decision, at: datetime) -> None:
    if decision.audible:
        outbox.post(session, [draft], campaign_id=None, issues_per_day=0, at=at)


def _test(session: Session, doing: Doing, pull: Pull, decision: Decision, at: datetime) -> int | None:
    """The campaign that tests the head, made if there is none to speak of yet."""
    config, arguments = decision.config, doing.errand.arguments
    assert config is not None
    wish = arguments if arguments.get("head") == pull.head else {}
    past = pulls.campaigns_of(session, pull.target, pull.number, pull.head, decision.base)
    if past and past[-1].state != CampaignState.SUPERSEDED.value and not wish.get("again"):
        return past[-1].id
    intake.end(session, pull, f"superseded: {pull.head[:12]} is tested anew", at)
    campaign = intents.handle(session, _intent(pull, decision.base, len(past), wish), wake=doing.wake)
    campaign.config = config.to_json()
    _announce(session, campaign, at)
    return campaign.id


def _announce(session: Session, campaign: Campaign, at: datetime) -> None:
    known_as = targets.known_as(session, campaign.target)
    queued = underway.Underway.queued(campaign, known_as, pulls.before(session, campaign))
    outbox.post(session, [underway.draft(queued)], campaign_id=campaign.id, issues_per_day=0, at=at)


def _audit(session: Session, job: Job, pull: Pull, decision: Decision, at: datetime) -> None:
    """Tells what was decided, unless that is what was decided for this head before."""
    told = {"what": decision.what, "head": pull.head, "why": decision.why}
    if {name: job.result.get(name) for name in told} == told:
        return
    words = {TEST: "tested", WAIT: "held", LEAVE: "silent", BROKEN: "silent"}
    audit.record(
        session,
        pull.target,
        words[decision.what],
        intake.subject(pull.number),
        decision.why,
        at,
        evidence={"head": pull.head, "base": decision.base},
    )


def _same(read: Pull, known: Pull) -> bool:
    """Whether the decision that was made of one holds for the other."""
    told = ("head", "base", "draft", "state", "association", "author", "head_repository")
    ours = ("approved_head", "stopped_head")
    return all(getattr(read, name) == getattr(known, name) for name in (*told, *ours))


def _intent(pull: Pull, base: str, past: int, wish: Mapping[str, Any]) -> CampaignIntent:
    """What asks for the campaign; later ones of the same commits have a trigger of their own."""
    again = f":{past + 1}" if past else ""
    return CampaignIntent(
        target=pull.target,
        head=pull.head,
        base=base,
        ref=f"refs/pull/{pull.number}/head",
        trigger=f"pull_request:{pull.number}{again}",
        pull=pull.number,
        asked_by=str(wish.get("asked_by", "")),
        overrides=wish.get("overrides") or {},
    )
