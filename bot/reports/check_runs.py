"""Check runs of commits: the result of a campaign, or why a commit could not be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.errors import InternalError
from bot.github.limits import MAX_TITLE, marker
from bot.reports import text
from bot.reports.buttons import FILE, MUTE, REDUCE, RERUN, Button, actions
from bot.reports.campaign_view import CampaignView
from bot.reports.issue import collapse_blank_lines
from bot.reports.report import UNDECIDED, Report, idempotency_key
from bot.reports.sections import context, unmuted_regressions
from bot.reports.templates import pluralize, render
from bot.store.models import Classification
from bot.store.outbox import EffectDraft

CHECK_RUN = "check_run"
NAME = "assay"

#: Characters of a check run's text, a limit of Assay; the report is complete.
TEXT_BUDGET = 30_000
#: The same for pull requests, whose text includes folded reproducers since there are no issues.
PULL_BUDGET = 55_000
#: Maximal number of bugs in the summary.
_SHOWN = 10
#: (groups of a section, rows of a group, scripts), from most to least text.
_SIZES = ((30, 30, 30), (30, 30, 5), (12, 10, 3), (12, 10, 1), (4, 4, 1), (4, 4, 0), (1, 1, 0), (0, 0, 0))


@dataclass(frozen=True)
class CheckRunOptions:
    """Options of a check run.

    page         address of the report, "" for none
    gate         whether a regression fails the check
    muted        globs of muted operators
    pull         number of the pull request, None for a branch
    annotations  in the format of GitHub's API
    held         whether its issues wait for approval
    """

    page: str = ""
    gate: bool = False
    muted: Sequence[str] = ()
    pull: int | None = None
    annotations: Sequence[Mapping[str, Any]] = field(default=())
    held: bool = False


_DEFAULT_OPTIONS = CheckRunOptions()


def check_run_key_of(view: CampaignView) -> str:
    """The key of the campaign's check run."""
    return check_run_key(view.stable_name, view.head, view.campaign)


def check_run_key(stable_name: str, head: str, campaign: int) -> str:
    """The key of a campaign's check run."""
    return idempotency_key(CHECK_RUN, stable_name, head, str(campaign))


def build_check_run(report: Report, options: CheckRunOptions = _DEFAULT_OPTIONS) -> dict[str, Any]:
    """The body of `POST /repos/{owner}/{repo}/check-runs` for a campaign that has ended."""
    view = report.view
    values = context(report, muted=options.muted, pull=options.pull)
    extra: dict[str, Any] = {"annotations": list(options.annotations)} if options.annotations else {}
    run = build_payload(
        view.head,
        check_run_key_of(view),
        headline(report, options.muted),
        collapse_blank_lines(
            render(
                "reports/check_summary.md.j2",
                **values,
                new=unmuted_regressions(report, options.muted),
                shown=_SHOWN,
            )
        ),
        _text(values, options),
        conclusion=conclusion(report, options),
        started=view.started_at,
        ended=view.ended_at,
        page=options.page,
        buttons=_buttons(report, options),
    )
    return run | {"output": run["output"] | extra}


def headline(report: Report, muted: Sequence[str]) -> str:
    """The report in one line, without muted failures."""
    new = unmuted_regressions(report, muted)
    if report.with_classification(Classification.REGRESSION) and not new:
        return f"Nothing new in {pluralize(report.cases_run(), 'case')} but muted failures"
    return report.headline_for(new)


def conclusion(report: Report, options: CheckRunOptions = _DEFAULT_OPTIONS) -> str:
    """`success` if cases ran, nothing regressed, changed or is inconclusive, else `neutral`.

    An unmuted regression is a `failure` if the repository sets `pull_requests.gate`.
    """
    if unmuted_regressions(report, options.muted):
        return "failure" if options.gate else "neutral"
    open_ = report.cases(*UNDECIDED, Classification.CHANGED)
    return "success" if report.cases_run() and not open_ else "neutral"


def _buttons(report: Report, options: CheckRunOptions) -> list[Button]:
    """The buttons: a branch has one only if issues wait for approval."""
    if options.pull is None:
        return [FILE] if options.held and unmuted_regressions(report, options.muted) else []
    return [RERUN, REDUCE, MUTE] if unmuted_regressions(report, options.muted) else [RERUN]


_UNTESTED_TITLES = {
    "unchanged": "Nothing here that a case could reach",
    "unreached": "Not tested: only a build of the compiler has this change",
    "outdated": "Not tested: no wheel has this change yet",
    "broken": "This change breaks importing or compiling everything",
    "native": "Not tested: it needs a build of its native code",
    "unbuilt": "Not tested: it could not be built",
}


def build_untested_check_run(
    target: str,
    stable_name: str,
    head: str,
    campaign: int,
    reason: str,
    kind: str = "infrastructure",
    *,
    gate: bool = False,
) -> EffectDraft:
    """The check run of a commit on which no case was run.

    reason   the error message: what failed and how to fix it
    kind     as in `bot.campaigns.services.CampaignProblem`
    gate     whether a change that breaks the compiler fails the check
    """
    summary = render("reports/untested.md.j2", head=head, campaign=campaign, reason=reason, kind=kind)
    run = check_run_key(stable_name, head, campaign)
    title = _UNTESTED_TITLES.get(kind, "Could not test this commit")
    conclusion = {"unchanged": "success", "broken": "failure" if gate else "neutral"}.get(kind, "neutral")
    body = build_payload(head, run, title, collapse_blank_lines(summary), "", conclusion=conclusion)
    return EffectDraft(CHECK_RUN, run, target, body, editable=True)


def build_payload(
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

    run         the key of its effect, which finds the check run again
    status      queued, in_progress or completed; only the last has a `conclusion`
    page        address of the report, "" for none
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


def _text(values: Mapping[str, Any], options: CheckRunOptions) -> str:
    """The text, cut to its budget; reproducers only for pull requests, since branches have issues."""
    most = TEXT_BUDGET if options.pull is None else PULL_BUDGET
    for limit, rows, scripts in _SIZES:
        shown = 0 if options.pull is None else scripts
        body = collapse_blank_lines(
            render("reports/check_text.md.j2", **values, limit=limit, rows=rows, scripts=shown)
        )
        if len(body) <= most:
            return body
    raise InternalError(f"a check run of {len(body)} characters without a single finding in it")
