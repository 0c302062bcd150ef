"""The buttons of our check runs, and GitHub's own "Re-run".

Whoever presses one needs write access, which GitHub must be asked for: the event becomes a job, and the job
does it. What came of it is told in the check run itself, which is quiet, and in the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from bot.bugs import filing
from bot.campaigns import intents
from bot.campaigns.attend import attend
from bot.campaigns.provenance import origin
from bot.jobs.doing import Doing
from bot.pulls import intake
from bot.pulls.trust import WRITERS
from bot.reports import text
from bot.reports.buttons import FILE, MUTE, MUTE_FOR, REDUCE
from bot.reports.report import key
from bot.reports.templating import counted
from bot.store import Session, audit, bugs, findings, jobs, mutes, now, outbox, pulls
from bot.store.campaigns import after_commit, get
from bot.store.models import Campaign, Effect, Finding, JobState, Standing
from bot.store.outbox import Draft
from bot.store.pulls import PRESS
from bot.webhooks.intents import CampaignIntent, CheckIntent, Ignored

KEPT = 5  # notes on top of a check run
MOST = 5  # findings that one press reduces; the others can be asked for by command

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Press:
    """A button that was pressed, by somebody who may.

    campaign  whose check run it is; None for a check run that says why there is none
    stopped   who has stopped the pull request since, in words; "" for nobody
    """

    session: Session
    check: Effect
    campaign: Campaign | None
    sender: str
    at: datetime
    corpus: Path
    wake: intake.Wake
    stopped: str = ""


Action = Callable[[Press], str]
_ACTIONS: dict[str, Action] = {}


def pressed(*identifiers: str) -> Callable[[Action], Action]:
    """Decorator: what a button does; it returns what came of it, in one sentence for people."""

    def register(action: Action) -> Action:
        _ACTIONS.update(dict.fromkeys(identifiers, action))
        return action

    return register


def handle(
    session: Session,
    intent: CheckIntent,
    *,
    wake: intake.Wake | None = None,
    clock: Callable[[], datetime] = now,
) -> object:
    """A press becomes a job, once for each delivery; one of a check run that is not ours becomes nothing."""
    if intent.action not in _ACTIONS:
        return Ignored(f"no button of ours is called {intent.action!r}")
    checks = pulls.checks_of(session, intent.target, intent.head, intent.external_id)
    if not checks:
        return Ignored(f"no check run of ours is at {intent.head[:12]}")
    at = clock()
    for check in checks:
        jobs.ask(
            session,
            PRESS,
            intent.target,
            key(PRESS, intent.delivery, check.key),
            at,
            arguments={"action": intent.action, "check": check.key},
            campaign_id=check.campaign_id,
            asked_by=intent.sender,
        )
    if wake is not None:
        after_commit(session, wake)
    return checks


def press(doing: Doing) -> None:
    """Does what a button asks for. Raises InfrastructureError where GitHub does not answer."""
    errand, at = doing.errand, doing.services.clock.now()
    sender, action = errand.asked_by, str(errand.arguments["action"])
    forge = doing.forge
    role = attend(doing, lambda *_: "unknown" if forge is None else forge.permission(errand.target, sender))
    with doing.transaction() as (session, job):
        check = session.get(Effect, str(errand.arguments["check"]))
        if check is None:
            jobs.settle(job, JobState.DONE, "its check run is gone", {}, at)
            return
        campaign = None if check.campaign_id is None else get(session, check.campaign_id)
        stopped = str(job.arguments.get(intake.STOPPED, ""))
        pressed = Press(session, check, campaign, sender, at, doing.corpus, doing.wake, stopped)
        allowed = role in WRITERS
        if allowed:
            said = _ACTIONS[action](pressed)
            _tell(pressed, f"{sender}: {said}")
        else:
            said = f"{sender} pressed {action} and has no write access ({role})"
        what = "pressed" if allowed else "refused"
        audit.record(session, errand.target, what, _subject(pressed), said, at, who=sender)
        jobs.settle(job, JobState.DONE, said, {}, at)


@pressed(*intake.AGAIN)
def rerun(press: Press) -> str:
    """Has the commit tested again, by the rules of its first test: pressing releases nothing."""
    number = press.check.number if press.campaign is None else press.campaign.pull
    if number is None:
        return _again(press)
    if press.stopped:
        return f"{press.stopped} after this: it is not tested again"
    known = pulls.get(press.session, press.check.target, number)
    head = str(press.check.payload["head_sha"])
    if known is None or known.head != head or known.state != pulls.OPEN:
        return f"{head[:12]} is not the head of an open pull request any more, so it is not tested again"
    why = f"asked for by {press.sender}"
    intake.look(
        press.session,
        known.target,
        number,
        press.at,
        press.at,
        again=why,
        asked_by=press.sender,
        wake=press.wake,
    )
    return "asked for another test; it has a check run of its own"


def _again(press: Press) -> str:
    """The same for a commit of a branch."""
    old = press.campaign
    if old is None:
        return "there is no campaign to repeat"
    intent = CampaignIntent(
        target=old.target,
        head=old.head,
        base=old.base,
        ref=old.ref,
        trigger=f"rerun:{key(press.check.key, press.at.isoformat())[:16]}",
        asked_by=press.sender,
        overrides=old.overrides,
    )
    made = intents.handle(press.session, intent, wake=press.wake)
    return f"asked for another test: campaign {made.id}"


@pressed(REDUCE.identifier)
def reduce(press: Press) -> str:
    """Asks for a further reduction of what is new here."""
    meant = [one for one in _new(press) if one.bug_id is not None]
    first: dict[int, Finding] = {}
    for one in meant:
        first.setdefault(one.bug_id or 0, one)
    for bug_id, one in list(first.items())[:MOST]:
        jobs.ask(
            press.session,
            "reduce",
            press.check.target,
            key("reduce", press.check.key, str(bug_id), press.at.isoformat()),
            press.at,
            bug_id=bug_id,
            campaign_id=one.campaign_id,
            arguments={"case": one.case_id, "budget": 0.0},
            asked_by=press.sender,
        )
    if not first:
        return "there is nothing to reduce"
    after_commit(press.session, press.wake)
    more = f", the first of {len(first)}" if len(first) > MOST else ""
    return f"asked for smaller programs of {counted(min(len(first), MOST), 'bug')}{more}"


@pressed(MUTE.identifier)
def mute(press: Press) -> str:
    """Silences the operators of what is new here; what is found is still shown in check runs."""
    names = (origin(press.corpus, one.case_id).operator for one in _new(press))
    operators = sorted({name for name in names if name})
    until = press.at + MUTE_FOR
    why = f"pressed on {press.check.payload['head_sha'][:12]}"
    for operator in operators:
        mutes.add(press.session, press.check.target, operator, until, press.sender, why, press.at)
    if not operators:
        return "nothing here has one operator that could be muted"
    return f"muted {', '.join(operators)} until {until:%Y-%m-%d}; /assay unmute ends it"


@pressed(FILE.identifier)
def file(press: Press) -> str:
    """Releases the issues that are held about what is new here, each after a last look."""
    held = outbox.held_by(press.session, press.campaign.id) if press.campaign is not None else []
    for effect in held:
        bug = bugs.of_id(press.session, effect.bug_id)
        filing.ask(press.session, effect.key, effect.target, bug, press.at, press.sender)
    if not held:
        return "nothing is held here"
    after_commit(press.session, press.wake)
    return f"{counted(len(held), 'issue')} released; each is filed if the newest commit still shows it"


def _new(press: Press) -> list[Finding]:
    """What is new here."""
    if press.campaign is None:
        return []
    found = findings.of_campaign(press.session, press.campaign.id)
    return [one for one in found if one.standing == Standing.REGRESSION.value]


def _tell(press: Press, said: str) -> None:
    """Says in the check run what came of a press: above all else, and changed in place."""
    check = press.check
    output: Mapping[str, Any] = check.payload["output"]
    notes, summary = _notes(str(output["summary"]))
    told = "\n>\n".join([f"> {text.plain(said)}", *notes[: KEPT - 1]]) + f"\n\n{summary}"
    body = check.payload | {"output": {**output, "summary": told}}
    draft = Draft(check.kind, check.key, check.target, body, living=True)
    outbox.post(press.session, [draft], campaign_id=check.campaign_id, issues_per_day=0, at=press.at)


def _notes(summary: str) -> tuple[list[str], str]:
    """What was said on top of a summary before, and the summary itself."""
    lines = summary.split("\n")
    first = next((at for at, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return [line for line in lines[:first] if line != ">"], "\n".join(lines[first:]).lstrip("\n")


def _subject(press: Press) -> str:
    if press.campaign is not None and press.campaign.pull is not None:
        return intake.subject(press.campaign.pull)
    return f"effect:{press.check.key}"
