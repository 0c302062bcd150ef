"""The check run of a commit: one that tells what a campaign found, one that says it could not test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.errors import InternalError
from bot.github.limits import MAX_TITLE, marker
from bot.reports import text
from bot.reports.buttons import FILE, MUTE, REDUCE, RERUN, Button, actions
from bot.reports.issue import tidy
from bot.reports.report import OPEN, Report, key
from bot.reports.sections import accused, context
from bot.reports.templating import counted, render
from bot.reports.view import CampaignView
from bot.store.models import Standing
from bot.store.outbox import Draft

CHECK_RUN = "check_run"
NAME = "assay"

#: Ours: what somebody may still read on a check's page. The report has everything.
TEXT_BUDGET = 30_000
#: With the scripts of what a pull request breaks, folded away: nothing else on GitHub has them.
PULL_BUDGET = 55_000
#: Bugs named before anything else; the rest are below.
_SHOWN = 10
#: (groups of a section, rows of a group, scripts), from the full text to the least.
_SIZES = ((30, 30, 30), (30, 30, 5), (12, 10, 3), (12, 10, 1), (4, 4, 1), (4, 4, 0), (1, 1, 0), (0, 0, 0))


@dataclass(frozen=True)
class Setting:
    """What a check run depends on beside its report.

    page         where the whole report is, "" where it has no address
    gate         whether a regression fails the check
    muted        globs over operators that maintainers do not want to hear of
    pull         the pull request, None for a branch
    annotations  as GitHub's API describes them
    held         whether issues about it wait for somebody to release them
    """

    page: str = ""
    gate: bool = False
    muted: Sequence[str] = ()
    pull: int | None = None
    annotations: Sequence[Mapping[str, Any]] = field(default=())
    held: bool = False


_PLAIN = Setting()


def check_key(view: CampaignView) -> str:
    """One campaign has one check run."""
    return campaign_key(view.known_as, view.head, view.campaign)


def campaign_key(known_as: str, head: str, campaign: int) -> str:
    """The key of a campaign's check run."""
    return key(CHECK_RUN, known_as, head, str(campaign))


def check_run(report: Report, setting: Setting = _PLAIN) -> dict[str, Any]:
    """The body of `POST /repos/{owner}/{repo}/check-runs` for a campaign that has ended."""
    view = report.view
    told = context(report, muted=setting.muted, pull=setting.pull)
    extra: dict[str, Any] = {"annotations": list(setting.annotations)} if setting.annotations else {}
    run = payload(
        view.head,
        check_key(view),
        headline(report, setting.muted),
        tidy(render("reports/check_summary.md.j2", **told, new=accused(report, setting.muted), shown=_SHOWN)),
        _text(told, setting),
        conclusion=conclusion(report, setting),
        started=view.started_at,
        ended=view.ended_at,
        page=setting.page,
        buttons=_buttons(report, setting),
    )
    return run | {"output": run["output"] | extra}


def headline(report: Report, muted: Sequence[str]) -> str:
    """The report in one line; what is muted is no news."""
    new = accused(report, muted)
    if report.of(Standing.REGRESSION) and not new:
        return f"Nothing new in {counted(report.ran(), 'case')} but what is muted"
    return report.headed(new)


def conclusion(report: Report, setting: Setting = _PLAIN) -> str:
    """`success` only if the change was judged and broke nothing; `neutral` for all else.

    A regression is a `failure` only where the repository asked for that: `pull_requests.gate`. What
    maintainers have muted counts for nothing.
    """
    if accused(report, setting.muted):
        return "failure" if setting.gate else "neutral"
    open_ = report.cases(*OPEN)
    return "success" if report.ran() and not open_ else "neutral"


def _buttons(report: Report, setting: Setting) -> list[Button]:
    """Of a pull request's check; a branch's has one only where something waits for a press."""
    if setting.pull is None:
        return [FILE] if setting.held and accused(report, setting.muted) else []
    return [RERUN, REDUCE, MUTE] if accused(report, setting.muted) else [RERUN]


def untested(
    target: str, known_as: str, head: str, campaign: int, reason: str, kind: str = "infrastructure"
) -> Draft:
    """The check run of a commit that could not be tested; it says nothing about the compiler.

    reason   what failed and what to fix, as the error says it
    kind     whose it is to mend, as in `bot.campaigns.services.Trouble`
    """
    summary = render("reports/untested.md.j2", head=head, campaign=campaign, reason=reason, kind=kind)
    run = campaign_key(known_as, head, campaign)
    title = "Could not test this commit"
    body = payload(head, run, title, tidy(summary), "", conclusion="neutral")
    return Draft(CHECK_RUN, run, target, body, living=True)


def payload(
    head: str,
    run: str,
    title: str,
    summary: str,
    body: str,
    *,
    status: str = "completed",
    conclusion: str = "",
    started: datetime | None = None,
    ended: datetime | None = None,
    page: str = "",
    buttons: Sequence[Button] = (),
) -> dict[str, Any]:
    """The body of a check run.

    run         the key of its effect, by which the check run is found again
    status      queued, in_progress or completed; `conclusion` is given with the last alone
    page        where the whole report is, "" for none
    """
    made: dict[str, Any] = {"name": NAME, "head_sha": head, "status": status}
    if conclusion:
        made["conclusion"] = conclusion
    made["external_id"] = run
    made["output"] = {
        "title": text.title(title, MAX_TITLE),
        "summary": summary,
        "text": f"{body}\n{marker(run)}\n".lstrip("\n"),
    }
    times = {"started_at": started, "completed_at": ended}
    made |= {name: _time(at) for name, at in times.items() if at is not None}
    if page:
        made["details_url"] = page
    return made | ({"actions": actions(buttons)} if buttons else {})


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(told: Mapping[str, Any], setting: Setting) -> str:
    """Scripts are for pull requests; what a branch breaks has its issue."""
    most = TEXT_BUDGET if setting.pull is None else PULL_BUDGET
    for limit, rows, scripts in _SIZES:
        shown = 0 if setting.pull is None else scripts
        body = tidy(render("reports/check_text.md.j2", **told, limit=limit, rows=rows, scripts=shown))
        if len(body) <= most:
            return body
    raise InternalError(f"a check run of {len(body)} characters without a single finding in it")
