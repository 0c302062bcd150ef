"""Since which release of its compiler a bug is there: when that is asked, and what its issue is told.

An issue that is out gets one comment, which is edited in place; one that is not yet out gets a section. Where
nothing is known nothing is said. A bug that was over and is back is asked about anew, from the release on
that was the last to pass: what is known of its last life is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.bisection.search import Kind
from bot.bisection.telling import command, lines
from bot.bugs.telling import post
from bot.config.sections import ReportsConfig
from bot.github.limits import marker
from bot.reports import text
from bot.reports.issue import tidy
from bot.reports.report import key
from bot.reports.templating import render
from bot.store import Session, bugs, campaigns, jobs, targets
from bot.store.life import OVER
from bot.store.models import Bug, BugState, Campaign, Effect
from bot.store.outbox import Draft

SINCE, NOTE = "since", "note"
#: Ours: what the comment needs at most.
MAX_NOTE = 6_000


def ask(session: Session, effect: Effect, bug: Bug | None, at: datetime) -> None:
    """Asks for it, where the issue `effect` goes out, releases are tested and it is wanted unasked."""
    campaign = session.get(Campaign, effect.campaign_id) if effect.campaign_id is not None else None
    if bug is None or campaign is None or _answer(bug) is not None:
        return
    if _wanted(session, campaign, campaign.head_toolchain):
        name = key(SINCE, effect.key, f"{effect.created_at.timestamp():.0f}")
        arguments = {"effect": effect.key}
        jobs.ask(session, SINCE, bug.target, name, at, bug_id=bug.id, arguments=arguments)


def anew(session: Session, bug: Bug, campaign: Campaign | None, toolchain: str | None, at: datetime) -> None:
    """Asks for it once in each life of a bug but the first, where its issue is out.

    campaign   whose configuration says whether it is wanted unasked
    toolchain  the build that showed the bug again
    """
    life = bugs.lives(bug)
    if life == 1 or bug.issue is None or campaign is None or not _wanted(session, campaign, toolchain):
        return
    name = key(SINCE, targets.known_as(session, bug.target), "bug", str(bug.id), str(life))
    arguments = {"effect": "", "toolchain": toolchain}
    jobs.ask(session, SINCE, bug.target, name, at, bug_id=bug.id, arguments=arguments)


def _wanted(session: Session, campaign: Campaign, toolchain: str | None) -> bool:
    """Whether releases are what is tested, and the repository wants to hear of it unasked."""
    wanted = (campaign.config.get("reports") or {}).get("bisect", ReportsConfig().bisect)
    if wanted != "auto" or toolchain is None:
        return False
    return campaigns.toolchain(session, toolchain).provisioner == "release"


def over(bug: Bug) -> str:
    """Why nobody wants to know it any more; "" where somebody may."""
    if bug.ruling or bug.duplicate_of is not None:
        return "people have said what it is"
    return f"it is {bug.state} by now" if BugState(bug.state) in OVER else ""


def section(bug: Bug) -> str:
    """What an issue that is about to go out says of it; "" where nothing is known."""
    answer = _answer(bug)
    if answer is None or not worth_telling(answer):
        return ""
    return f"### Since which release\n\n{_said(bug, answer)}"


def tell(session: Session, bug: Bug, issue: str, at: datetime) -> None:
    """Posts the comment behind the issue that the effect `issue` files; quiet where nothing is known.

    Of a bug that is back, the comment there says when its last life began: whatever is known now is better.
    """
    answer = _answer(bug)
    if answer is None or over(bug):
        return
    if worth_telling(answer) or session.get(Effect, note_key(session, bug)) is not None:
        post(session, bug, [_note(session, bug, issue, answer)], at)


def correct(session: Session, bug: Bug, at: datetime) -> None:
    """Brings the comment up to date, where there is one, after somebody had it asked anew."""
    there, answer = session.get(Effect, note_key(session, bug)), _answer(bug)
    if there is not None and answer is not None and worth_telling(answer):
        post(session, bug, [_note(session, bug, there.after, answer)], at)


def worth_telling(answer: Mapping[str, Any]) -> bool:
    """Whether maintainers learn something: a release, or that it is older than all that were tried.

    What shows too seldom to be followed is not told; what is in doubt only for its words is, with the doubt.
    """
    kind = Kind(answer["kind"])
    if kind is Kind.HORIZON:
        return not answer.get("untried")
    doubted = kind is Kind.UNRELIABLE and bool(answer.get("doubt"))
    return (kind in (Kind.FOUND, Kind.RANGE) or doubted) and bool(answer["release"] and answer["before"])


def note_key(session: Session, bug: Bug) -> str:
    """The effect that is the comment: a bug has one."""
    return key(NOTE, targets.known_as(session, bug.target), "bug", str(bug.id), SINCE)


def _answer(bug: Bug) -> dict[str, Any] | None:
    found: dict[str, Any] | None = bug.facts.get("bisection", {}).get("since")
    return found


def _note(session: Session, bug: Bug, issue: str, answer: Mapping[str, Any]) -> Draft:
    name = note_key(session, bug)
    body = text.cut(tidy(_said(bug, answer)), MAX_NOTE)
    return Draft(
        NOTE,
        name,
        bug.target,
        {"body": f"{body}\n\n{marker(name)}\n"},
        number=bug.issue,
        after="" if bug.issue is not None else issue,
        living=True,
        bug_id=bug.id,
    )


def _said(bug: Bug, answer: Mapping[str, Any]) -> str:
    told, back = lines(dict(answer)), bugs.lives(bug) > 1
    return render(
        "bugs/since.md.j2", said=told[0], table="\n".join(told[1:]), again=command(answer), back=back
    )
