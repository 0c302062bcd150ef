"""Check runs and the comment of a pull request.

The first regression creates the comment; later campaigns edit it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from bot.config import RepositoryConfig
from bot.reports.annotations import TouchedCode, build_annotations
from bot.reports.check_runs import (
    CHECK_RUN,
    CheckRunOptions,
    build_check_run,
    build_payload,
    check_run_key_of,
    headline,
)
from bot.reports.issue import collapse_blank_lines
from bot.reports.report import Group, Report, idempotency_key
from bot.reports.sections import unmuted_regressions
from bot.reports.sticky_comment import PreviousFinding, comment_key, draft_comment, rerun_command
from bot.reports.templates import pluralize, render
from bot.store import Session, audit, mutes, outcomes
from bot.store.campaigns import get
from bot.store.models import Classification, Effect, Pull
from bot.store.outbox import EffectDraft
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Verdict

COMMENTED_EVENT = "commented"
#: Maximal number of previously reported bugs in the comment.
MAX_REMEMBERED = 50
#: Text about a previously reported bug that is no longer new.
_CURRENT_STATES = {
    Classification.REGRESSION: "still fails; a maintainer muted its operator",
    Classification.CHANGED: "now fails at base too, in another way",
    Classification.ALREADY_BROKEN: "now fails at base too",
    Classification.SUPPORT_LOST: "is now unsupported",
    Classification.FLAKY: "no longer fails every time",
}
_INCONCLUSIVE = "result inconclusive"


def pull_key(stable_name: str, pull: Pull) -> str:
    """The key of the check run of a head that no campaign tests."""
    return idempotency_key(CHECK_RUN, stable_name, pull.head, f"pull:{pull.number}")


def draft_awaiting_approval(stable_name: str, pull: Pull, why: str) -> EffectDraft:
    """The neutral check run of a head that waits for approval."""
    summary = collapse_blank_lines(render("reports/awaiting_approval.md.j2", pull=pull, why=why))
    return _draft(stable_name, pull, "Waiting for a maintainer: comment /assay run", summary)


def draft_config_error(stable_name: str, pull: Pull, why: str) -> EffectDraft:
    """The neutral check run of a head whose configuration cannot be read."""
    summary = collapse_blank_lines(render("reports/config_error.md.j2", pull=pull, why=why))
    return _draft(stable_name, pull, "Could not test this commit: .github/assay.yml", summary)


def _draft(stable_name: str, pull: Pull, title: str, summary: str) -> EffectDraft:
    run = pull_key(stable_name, pull)
    body = build_payload(pull.head, run, title, summary, "", conclusion="neutral")
    # There is no campaign whose configuration sets the mode; callers check it.
    return EffectDraft(CHECK_RUN, run, pull.target, body, number=pull.number, editable=True, mode="live")


@dataclass(frozen=True)
class CommentDecision:
    """Whether a campaign's pull request gets a comment.

    draft     the comment, or None
    reason    why there is one or none, for people
    evidence  the campaign, its head, and `reported`: the bugs of the comment, newest first
    """

    draft: EffectDraft | None
    reason: str
    evidence: Mapping[str, Any]


def draft_effects(
    session: Session, report: Report, config: RepositoryConfig, at: datetime, page: str = ""
) -> tuple[EffectDraft, CommentDecision]:
    """The final check run of a pull request's campaign, and the decision about its comment.

    `page` is the URL of the report, "" for none.
    """
    view = report.view
    muted = [mute.operator for mute in mutes.in_force(session, view.target, at)]
    touched_code = TouchedCode(view.ranking.touched if view.ranking else ())
    groups = unmuted_regressions(report, muted)
    gate = config.pull_requests.gate
    annotations = build_annotations(groups, touched_code, partial(rerun_command, report), gate=gate)
    options = CheckRunOptions(page, gate, muted, view.pull, annotations)
    check = EffectDraft(
        CHECK_RUN, check_run_key_of(view), view.target, build_check_run(report, options), editable=True
    )
    return check, _decide_comment(session, report, groups, touched_code, muted, config)


def _decide_comment(
    session: Session,
    report: Report,
    groups: Sequence[Group],
    touched_code: TouchedCode,
    muted: Sequence[str],
    config: RepositoryConfig,
) -> CommentDecision:
    view = report.view
    assert view.pull is not None
    exists = session.get(Effect, comment_key(view.stable_name, view.pull)) is not None
    evidence: dict[str, Any] = {"campaign": view.campaign, "head": view.head}
    if reason := _reason_for_no_comment(report, groups, config, exists=exists):
        return CommentDecision(None, reason, evidence)
    now = [_entry(group) for group in groups]
    known = {one["signature"] for one in now}
    past = [one for one in _reported_before(session, view.target, view.pull) if one["signature"] not in known]
    evidence["reported"] = [*now, *past][:MAX_REMEMBERED]
    why = f"{pluralize(len(groups), 'new bug')} at {view.head[:12]}" if groups else "nothing new"
    run = session.get(Effect, check_run_key_of(view))
    address = run.url if run is not None and run.url.startswith("https://") else ""
    previous = list(_look_up_previous(session, report, past))
    draft = draft_comment(report, groups, previous, touched_code, address, headline(report, muted))
    return CommentDecision(draft, why, evidence)


def _reported_before(session: Session, target: str, pull: int) -> Sequence[Mapping[str, Any]]:
    """The bugs that the comment named so far."""
    event = audit.last(session, target, f"pull:{pull}", COMMENTED_EVENT)
    # Events of earlier versions have them as "told".
    return [] if event is None else event.evidence.get("reported", event.evidence.get("told", []))


def _reason_for_no_comment(
    report: Report, groups: Sequence[Group], config: RepositoryConfig, *, exists: bool
) -> str:
    """Why there is no comment; "" if there is one."""
    if exists:
        return ""
    if not groups:
        muted = " but muted failures" if report.with_classification(Classification.REGRESSION) else ""
        return f"nothing new{muted} in {pluralize(report.cases_run(), 'case')}; shown in the check run"
    if not config.pull_requests.comment:
        return "pull_requests.comment is off; shown in the check run"
    return ""


def _entry(group: Group) -> dict[str, str]:
    return {"signature": group.signature, "title": group.title, "case": group.example.case}


def _look_up_previous(
    session: Session, report: Report, past: Sequence[Mapping[str, Any]]
) -> Iterator[PreviousFinding]:
    """The state at head of each previously reported bug that is no longer new."""
    campaign = get(session, report.view.campaign)
    place = CacheKey.of(campaign.head_toolchain or "", campaign.config)
    standings = {group.signature: group.classification for group in reversed(report.groups)}
    at = report.view.head[:12]
    for one in past:
        classification = standings.get(str(one["signature"]))
        outcome = outcomes.get(session, str(one["case"]), place)
        fixed = False
        if classification is not None and classification is not Classification.FIXED:
            now = _CURRENT_STATES.get(classification, _INCONCLUSIVE)
        elif outcome is None:
            now = f"was not run at {at}; result inconclusive"
        elif outcome.verdict is Verdict.PASS:
            now, fixed = f"passes at {at}", True
        else:
            now = f"now gives {outcome.verdict.value.replace('_', ' ')} at {at}"
        yield PreviousFinding(str(one["title"]), now, fixed)
