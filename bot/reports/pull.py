"""What a pull request is told: that it waits, what its campaign found, and the one comment about it.

The comment is written only when there is something to say: a regression. When later pushes mend it, the same
comment says so; it never becomes two. Everything else is silence, whose reason is in the audit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from bot.config import RepositoryConfig
from bot.reports.annotations import Touches, beside_lines
from bot.reports.check import CHECK_RUN, Setting, check_key, check_run, headline, payload
from bot.reports.issue import tidy
from bot.reports.report import Group, Report, key
from bot.reports.sections import accused
from bot.reports.sticky import Earlier, command, sticky, sticky_key
from bot.reports.templating import counted, render
from bot.store import Session, audit, mutes, outcomes, pulls
from bot.store.campaigns import get
from bot.store.models import Effect, Pull, Standing
from bot.store.outbox import Draft
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Verdict

COMMENTED = "commented"
#: Bugs that the comment remembers having told of.
REMEMBERED = 50
#: How something the comment told of before stands now, where it is found among other things than what is new.
_STANDINGS = {
    Standing.REGRESSION: "fails still, of an operator that a maintainer has muted",
    Standing.ALREADY_BROKEN: "fails at base too by now",
    Standing.SUPPORT_LOST: "is refused as unsupported now",
    Standing.FLAKY: "fails not each time any more",
}
_UNJUDGED = "could not be judged this time"


def pull_key(known_as: str, pull: Pull) -> str:
    """The key of the check run of a head that no campaign tests."""
    return key(CHECK_RUN, known_as, pull.head, f"pull:{pull.number}")


def waiting(known_as: str, pull: Pull, why: str) -> Draft:
    """The neutral check run of a head that waits for somebody with write access."""
    summary = tidy(render("reports/waiting.md.j2", pull=pull, why=why))
    return _draft(known_as, pull, "Waits for a maintainer: comment /assay run", summary)


def unreadable(known_as: str, pull: Pull, why: str) -> Draft:
    """The neutral check run of a head whose configuration cannot be read."""
    summary = tidy(render("reports/unreadable.md.j2", pull=pull, why=why))
    return _draft(known_as, pull, "Could not test this commit: .github/assay.yml", summary)


def _draft(known_as: str, pull: Pull, title: str, summary: str) -> Draft:
    run = pull_key(known_as, pull)
    body = payload(pull.head, run, title, summary, "", conclusion="neutral")
    # No campaign's configuration says that these may be sent: whoever posts them has made sure.
    return Draft(CHECK_RUN, run, pull.target, body, number=pull.number, living=True, mode="live")


def effects(
    session: Session, report: Report, config: RepositoryConfig, at: datetime, page: str = ""
) -> list[Draft]:
    """The last word of a pull request's campaign: its check run, and the comment where there is one to be.

    Writes into the audit what is told, or why nothing is. `page` is where the whole report is, "" for
    nowhere.
    """
    view = report.view
    muted = [mute.operator for mute in mutes.in_force(session, view.target, at)]
    touches = Touches(view.ranking.touched if view.ranking else ())
    groups = accused(report, muted)
    gate = config.pull_requests.gate
    setting = Setting(
        page, gate, muted, view.pull, beside_lines(groups, touches, partial(command, report), gate=gate)
    )
    check = Draft(CHECK_RUN, check_key(view), view.target, check_run(report, setting), living=True)
    said = _comment(session, report, groups, touches, setting, config, at)
    return [check] if said is None else [check, said]


def _comment(
    session: Session,
    report: Report,
    groups: Sequence[Group],
    touches: Touches,
    setting: Setting,
    config: RepositoryConfig,
    at: datetime,
) -> Draft | None:
    """The comment, or None and a reason in the audit."""
    view = report.view
    assert view.pull is not None
    there = session.get(Effect, sticky_key(view.known_as, view.pull)) is not None
    reason = _silence(report, groups, config, there=there)
    subject = f"pull:{view.pull}"
    evidence: dict[str, Any] = {"campaign": view.campaign, "head": view.head}
    if reason:
        audit.record(session, view.target, "silent", subject, reason, at, evidence=evidence)
        return None
    told = pulls.last_act(session, view.target, subject, COMMENTED)
    before = [] if told is None else list(told.evidence.get("told", ()))
    now = [_entry(group) for group in groups]
    known = {one["signature"] for one in now}
    past = [one for one in before if one["signature"] not in known]
    evidence["told"] = [*now, *past][:REMEMBERED]
    why = f"{counted(len(groups), 'new bug')} at {view.head[:12]}" if groups else "nothing new is left"
    audit.record(session, view.target, COMMENTED, subject, why, at, evidence=evidence)
    run = session.get(Effect, check_key(view))
    address = run.url if run is not None and run.url.startswith("https://") else ""
    earlier = list(_earlier(session, report, past))
    return sticky(report, groups, earlier, touches, address, headline(report, setting.muted))


def _silence(report: Report, groups: Sequence[Group], config: RepositoryConfig, *, there: bool) -> str:
    """Why there is no comment; "" where there is one to be."""
    if there:
        return ""
    if not groups:
        muted = " but what is muted" if report.of(Standing.REGRESSION) else ""
        return f"nothing new{muted} in {counted(report.ran(), 'case')}: the check run says it"
    if not config.pull_requests.comment:
        return "pull_requests.comment is off: the check run says it"
    return ""


def _entry(group: Group) -> dict[str, str]:
    return {"signature": group.signature, "title": group.title, "case": group.example.case}


def _earlier(session: Session, report: Report, past: Sequence[Mapping[str, Any]]) -> Iterator[Earlier]:
    """What was told of before and is not new any more, each looked up at the new head."""
    campaign = get(session, report.view.campaign)
    place = CacheKey.of(campaign.head_toolchain or "", campaign.config)
    standings = {group.signature: group.standing for group in reversed(report.groups)}
    at = report.view.head[:12]
    for one in past:
        standing = standings.get(str(one["signature"]))
        outcome = outcomes.get(session, str(one["case"]), place)
        mended = False
        if standing is not None and standing is not Standing.FIXED:
            now = _STANDINGS.get(standing, _UNJUDGED)
        elif outcome is None:
            now = f"was not run again at {at}, so nobody knows"
        elif outcome.verdict is Verdict.PASS:
            now, mended = f"passes at {at}", True
        else:
            now = f"gives {outcome.verdict.value.replace('_', ' ')} at {at} now"
        yield Earlier(str(one["title"]), now, mended)
