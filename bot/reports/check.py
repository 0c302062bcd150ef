"""The check run of a commit: one that tells what a campaign found, one that says it could not test."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.errors import InternalError
from bot.github.limits import MAX_TITLE, marker
from bot.reports import text
from bot.reports.issue import tidy
from bot.reports.report import OPEN, Report, key
from bot.reports.sections import context
from bot.reports.templating import render
from bot.reports.view import CampaignView
from bot.store.models import Standing
from bot.store.outbox import Draft

CHECK_RUN = "check_run"
NAME = "assay"

#: Ours: what somebody may still read on a check's page. The report has everything.
TEXT_BUDGET = 30_000
#: (groups of a section, rows of a group), from the full text to the least.
_SIZES = ((30, 30), (12, 10), (4, 4), (1, 1), (0, 0))


def check_key(view: CampaignView) -> str:
    """One campaign has one check run."""
    return _key(view.target, view.head, view.campaign)


def _key(target: str, head: str, campaign: int) -> str:
    return key(CHECK_RUN, target, head, str(campaign))


def check_run(report: Report) -> dict[str, Any]:
    """The body of `POST /repos/{owner}/{repo}/check-runs` for a campaign that has ended."""
    view = report.view
    summary = tidy(render("reports/check_summary.md.j2", **context(report)))
    return _payload(
        view.head,
        check_key(view),
        conclusion(report),
        report.headline,
        summary,
        _text(report),
        view.started_at,
        view.ended_at,
    )


def conclusion(report: Report) -> str:
    """`success` only if the change was judged and broke nothing; `neutral` for all else.

    Nothing fails a check unless the repository asks for gating, which comes later.
    """
    open_ = report.cases(Standing.REGRESSION, *OPEN)
    return "success" if report.ran() and not open_ else "neutral"


def untested(target: str, head: str, campaign: int, reason: str) -> Draft:
    """The check run of a commit that could not be tested; it says nothing about the compiler.

    reason   what failed and what to fix, as the error says it
    """
    summary = render("reports/untested.md.j2", head=head, campaign=campaign, reason=reason)
    run = _key(target, head, campaign)
    title = "Could not test this commit"
    return Draft(CHECK_RUN, run, target, _payload(head, run, "neutral", title, tidy(summary), ""))


def _payload(
    head: str,
    run: str,
    verdict: str,
    title: str,
    summary: str,
    body: str,
    started: datetime | None = None,
    ended: datetime | None = None,
) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "name": NAME,
        "head_sha": head,
        "status": "completed",
        "conclusion": verdict,
        "external_id": run,
        "output": {
            "title": text.title(title, MAX_TITLE),
            "summary": summary,
            "text": f"{body}\n{marker(run)}\n".lstrip("\n"),
        },
    }
    times = {"started_at": started, "completed_at": ended}
    return payload | {name: _time(at) for name, at in times.items() if at is not None}


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(report: Report) -> str:
    for limit, rows in _SIZES:
        body = tidy(render("reports/check_text.md.j2", **context(report), limit=limit, rows=rows))
        if len(body) <= TEXT_BUDGET:
            return body
    raise InternalError(f"a check run of {len(body)} characters without a single finding in it")
