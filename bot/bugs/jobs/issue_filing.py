"""The job `issue_filing`: searches duplicates of a held issue, and runs its case on the newest commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.bisection.commits import describe_result
from bot.bugs import culprit, first_bad_release, reproduction
from bot.bugs.issue_filing import FILING, UNCHECKED, find_suppression
from bot.bugs.reproduction import BugCase
from bot.campaigns.provenance import origin
from bot.errors import RefusalError
from bot.github.limits import BODY_BUDGET, MARKER_PREFIX, marker
from bot.jobs.job_context import IssueInfo, JobContext
from bot.jobs.registry import job_kind
from bot.reports import text
from bot.store import Session, audit, bugs, jobs, outbox, suppression
from bot.store.bug_states import RESOLVED, Event
from bot.store.models import BugState, Campaign, Effect, EffectState, Job, SuppressionCause

#: Related issues that an issue lists, and words of a search.
RELATIVES, WORDS = 3, 6
#: Parts of a compiler in one row.
NAMED = 8
#: Words that do not identify an error.
_COMMON = frozenset({"error", "exception", "failed", "the", "with", "from", "and", "for", "not", "model"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")


@dataclass(frozen=True)
class _FilingCheck:
    """The result of the checks.

    hold       why the issue stays held, "" if it does not; a person's request overrides it
    gone       why there is nothing to file: the newest build passes
    operator   the operator of the case
    relatives  related issues
    brought    the commit that introduced it, by `bot.bisection.commits`; None if not known
    where      the facts of the job `localize`
    """

    hold: str = ""
    gone: str = ""
    operator: str = ""
    relatives: tuple[IssueInfo, ...] = ()
    brought: dict[str, Any] | None = None
    where: tuple[dict[str, Any], ...] = ()


def _on_given_up(session: Session, job: Job, reason: str, at: datetime) -> None:
    """Holds the issue with the reason; the next campaign that sees the bug requests the checks again."""
    effect = session.get(Effect, str(job.arguments["effect"]))
    if effect is None or effect.state != EffectState.HELD.value:
        return
    suppression.set_reason(effect, f"{UNCHECKED}: {reason}", SuppressionCause.CHECKING)
    bug = bugs.of_id(session, effect.bug_id)
    if bug is not None:
        bugs.hold(session, bug.id, effect.reason, at)


@job_kind(FILING, on_given_up=_on_given_up)
def file(job_context: JobContext) -> None:
    """Approves a held issue, or records why it stays held."""
    name = str(job_context.job_spec.arguments["effect"])
    with job_context.database.reading() as session:
        effect = session.get(Effect, name)
        waits = effect is not None and effect.state == EffectState.HELD.value
        payload = dict(effect.payload) if effect is not None else {}
        known = (
            reproduction.load_bug_case(session, job_context)
            if waits and job_context.job_spec.bug_id is not None
            else None
        )
    if not waits or known is None:
        with job_context.transaction() as (session, job):
            job_context.done(session, job, "no issue waits to be filed")
        return
    seen = _check(job_context, known, payload)
    with job_context.transaction() as (session, job):
        if _is_outdated(session, known, seen):
            jobs.release_lease(job)  # checked again with the present facts
            return
        _apply(session, job, job_context, name, seen)


def _is_outdated(session: Session, known: BugCase, seen: _FilingCheck) -> bool:
    """Whether the bug changed meanwhile: it recurred, or it passed here and a campaign saw it."""
    bug = bugs.of_id(session, known.bug.id)
    if bug is None:
        return False
    return bugs.occurrence(bug) != bugs.occurrence(known.bug) or (
        bool(seen.gone) and bug.campaign_id != known.bug.campaign_id
    )


def _check(job_context: JobContext, known: BugCase, payload: dict[str, object]) -> _FilingCheck:
    operator = origin(job_context.corpus, known.case).operator
    gone = _gone_reason(job_context, known)
    if gone:
        return _FilingCheck(gone=gone)
    found = _search_similar_issues(job_context, known, payload)
    title = str(payload.get("title", ""))
    same = [one for one in found if _words(one.title) == _words(title) and one.state == "open"]
    hold = (
        f"#{same[0].number} is open with the same title; `/assay upstream` files this one anyway"
        if same
        else ""
    )
    brought = _find_culprit(job_context, known) if job_context.job_spec.requested_by or not hold else None
    where = tuple(known.bug.facts.get("localization", {}).get("facts", ()))
    return _FilingCheck(
        hold=hold, operator=operator, relatives=tuple(found[:RELATIVES]), brought=brought, where=where
    )


def _find_culprit(job_context: JobContext, known: BugCase) -> dict[str, Any] | None:
    """The commit that introduced it; None too if its commits are gone, so the issue is filed without it."""
    there: dict[str, Any] | None = known.bug.facts.get("bisection", {}).get("commits")
    try:
        return there or culprit.find_culprit(job_context, known)
    except RefusalError as error:
        job_context.progress(0, 0, f"the commit that introduced it is unknown: {error}")
        return None


def _gone_reason(job_context: JobContext, known: BugCase) -> str:
    """Why the newest commit does not show the bug; "" if it does or is the campaign's own."""
    newest_commit = job_context.newest_commit(known.campaign)
    if not newest_commit or newest_commit == known.campaign.head:
        return ""
    place = reproduction.build_of_commit(job_context, known.campaign, newest_commit)
    if place.toolchain == known.campaign.head_toolchain:
        return ""
    with job_context.database.reading() as session:
        control = reproduction.find_control_case(session, known)
    seen = reproduction.run_with_control(job_context, known, control, place)
    summary = f"it {seen.describe(place.label)}, the newest commit {newest_commit[:12]}"
    if seen.passed:
        return summary
    if seen.failed and seen.control_passed:
        return ""
    raise RefusalError(f"{summary}: inconclusive")


def _search_similar_issues(
    job_context: JobContext, known: BugCase, payload: dict[str, object]
) -> list[IssueInfo]:
    """People's issues with the same words, best match first; none without credentials."""
    words = _words(str(payload.get("title", "")))[:WORDS]
    if job_context.github_reader is None or not words:
        return []
    found = job_context.github_reader.search_issues(known.campaign.target, " ".join(words))
    return [one for one in found if MARKER_PREFIX not in one.body and not one.pull]


def _words(title: str) -> list[str]:
    return [word for word in _WORD.findall(title) if word.lower() not in _COMMON]


def _apply(session: Session, job: Job, job_context: JobContext, name: str, seen: _FilingCheck) -> None:
    effect = session.get_one(Effect, name)
    why, cause = (
        (seen.gone, SuppressionCause.NONE)
        if seen.gone
        else _reason_to_hold(session, job, job_context, effect, seen)
    )
    if effect.state != EffectState.HELD.value:
        job_context.done(session, job, "it was approved meanwhile")
    elif why:
        suppression.set_reason(effect, why, cause)
        _hold_issue(session, job, job_context, effect, why, gone=bool(seen.gone))
    else:
        bug = bugs.of_id(session, effect.bug_id)
        if bug is not None and seen.brought:
            bugs.set_fact(
                session, bug, "bisection", {**bug.facts.get("bisection", {}), "commits": seen.brought}
            )
        body = str(effect.payload["body"])
        known_since = first_bad_release.render_section(bug) if bug is not None else ""
        since = first_bad_release.summarize(bug) if bug is not None else ""
        for section in [*_sections(seen), *filter(None, [known_since])]:
            body = _insert_section(body, name, section)
        body = _insert_above_fold(body, [*_first_bad_commit(seen), *filter(None, [since])])
        effect.payload = {**effect.payload, "body": body}
        outbox.approve(session, name)
        first_bad_release.request_search(session, effect, bug, job_context.services.clock.now())
        job_context.done(
            session, job, "checked: the bug is still there, and no open issue has the same title"
        )


def _reason_to_hold(
    session: Session, job: Job, job_context: JobContext, effect: Effect, seen: _FilingCheck
) -> tuple[str, SuppressionCause]:
    """Why the issue stays held; "" if it is filed, or a person requested it."""
    if job.requested_by:
        return "", SuppressionCause.NONE
    bug, at = bugs.of_id(session, effect.bug_id), job_context.services.clock.now()
    if bug is not None and BugState(bug.state) in RESOLVED:
        return f"it is now {bug.state}: {bug.reason}", SuppressionCause.NONE
    if quiet := find_suppression(session, effect.target, bug, seen.operator, at) or seen.hold:
        return quiet, SuppressionCause.NONE
    campaign = session.get(Campaign, effect.campaign_id) if effect.campaign_id is not None else None
    per_day = int(((campaign.config if campaign else {}).get("reports") or {}).get("issues_per_day", 0))
    return outbox.over_quota(session, effect.target, per_day, at, effect.key), SuppressionCause.OVER_QUOTA


def _hold_issue(
    session: Session, job: Job, job_context: JobContext, effect: Effect, why: str, *, gone: bool
) -> None:
    at = job_context.services.clock.now()
    bug = bugs.of_id(session, effect.bug_id)
    if bug is not None:
        if gone:
            bugs.apply_event(session, bug, Event.PASSED, why, at)
        else:
            bugs.hold(session, bug.id, why, at)
        audit.record(session, bug.target, "silent", bugs.audit_subject(bug), why, at)
    job_context.done(session, job, why)


def _sections(seen: _FilingCheck) -> Iterator[str]:
    """The results of the checks as sections of the issue."""
    named = [one for one in seen.where if one["found"] and one["confirmed"] is not False]
    if named:
        rows = [f"| {one['what']} | {_listed(one['found'])} | {text.plain(one['how'])} |" for one in named]
        head = ["### Where in the compiler", "", "| part | found | how |", "| --- | --- | --- |"]
        yield "\n".join([*head, *rows])
    if seen.relatives:
        lines = [f"- #{one.number}: {text.plain(one.title)} ({one.state})" for one in seen.relatives]
        yield "\n".join(["### Perhaps related", "", *lines])


def _first_bad_commit(seen: _FilingCheck) -> Iterator[str]:
    if seen.brought:
        yield f"### Which commit\n\n{text.plain(_capitalize(describe_result(seen.brought)))}."


def _listed(names: list[str]) -> str:
    """Names in a table's cell, at most NAMED."""
    shown = ", ".join(text.cell(name) for name in names[:NAMED])
    left = len(names) - NAMED
    return f"{shown} and {left} more" if left > 0 else shown


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _insert_section(body: str, name: str, section: str) -> str:
    """The body with a section before its marker, if there is room."""
    head, mark, _ = body.rpartition(marker(name))
    longer = f"{head.rstrip()}\n\n{section}\n\n{mark}\n"
    return longer if len(longer) <= BODY_BUDGET else body


def _insert_above_fold(body: str, sections: Sequence[str]) -> str:
    """The body with sections before its first collapsed part, else before its marker, if there is room."""
    fold = body.find("\n<details>")
    fold = fold if fold >= 0 else body.rfind("\n" + MARKER_PREFIX)
    longer = "\n\n".join([body[:fold].rstrip(), *sections, body[fold:].lstrip("\n")])
    return longer if sections and len(longer) <= BODY_BUDGET else body
