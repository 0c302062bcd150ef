"""The first bad release of a bug: when it is searched, and how its issue shows it.

A filed issue gets one comment, edited in place; an unfiled one gets a section. After a recurrence the search
is repeated, from the last passing release on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.bisection.report import describe_toolchains, format_lines, rerun_command
from bot.bisection.search import ResultKind
from bot.bugs.issue_updates import post
from bot.bugs.release_bisection import is_bisectable
from bot.config.sections import ReportsConfig
from bot.github.limits import marker
from bot.reports import text
from bot.reports.issue import collapse_blank_lines
from bot.reports.report import idempotency_key
from bot.reports.templates import render
from bot.store import Session, bugs, campaigns, jobs, targets
from bot.store.bug_states import RESOLVED
from bot.store.models import Bug, BugState, Campaign, Effect
from bot.store.outbox import EffectDraft

FIRST_BAD_RELEASE, NOTE = "first_bad_release", "note"
#: Characters of the comment.
MAX_NOTE = 6_000


def request_search(session: Session, effect: Effect, bug: Bug | None, at: datetime) -> None:
    """Enqueues the search for the filed issue `effect`, if the target tests releases and enables it."""
    campaign = session.get(Campaign, effect.campaign_id) if effect.campaign_id is not None else None
    if bug is None or campaign is None or _stored_result(bug) is not None:
        return
    if _is_enabled(session, campaign, campaign.head_toolchain):
        name = idempotency_key(
            jobs.key_word(FIRST_BAD_RELEASE), effect.key, f"{effect.created_at.timestamp():.0f}"
        )
        arguments = {"effect": effect.key}
        jobs.enqueue(session, FIRST_BAD_RELEASE, bug.target, name, at, bug_id=bug.id, arguments=arguments)


def request_search_again(
    session: Session, bug: Bug, campaign: Campaign | None, toolchain: str | None, at: datetime
) -> None:
    """Enqueues the search once for each recurrence of a filed bug.

    campaign   its configuration says whether the search is enabled
    toolchain  the build that showed the recurrence
    """
    occurrence = bugs.occurrence(bug)
    if (
        occurrence == 1
        or bug.issue is None
        or campaign is None
        or not _is_enabled(session, campaign, toolchain)
    ):
        return
    name = idempotency_key(
        jobs.key_word(FIRST_BAD_RELEASE),
        targets.stable_name(session, bug.target),
        "bug",
        str(bug.id),
        str(occurrence),
    )
    arguments = {"effect": "", "toolchain": toolchain}
    jobs.enqueue(session, FIRST_BAD_RELEASE, bug.target, name, at, bug_id=bug.id, arguments=arguments)


def _is_enabled(session: Session, campaign: Campaign, toolchain: str | None) -> bool:
    """Whether releases are tested and `reports.bisect` is "auto"."""
    wanted = (campaign.config.get("reports") or {}).get("bisect", ReportsConfig().bisect)
    if wanted != "auto" or toolchain is None:
        return False
    return is_bisectable(campaigns.toolchain(session, toolchain).provisioner)


def find_skip_reason(bug: Bug) -> str:
    """Why the search is no longer useful; "" if it is."""
    if bug.resolution or bug.duplicate_of is not None:
        return "people have resolved it"
    return f"it is {bug.state} by now" if BugState(bug.state) in RESOLVED else ""


def render_section(bug: Bug) -> str:
    """The section of an unfiled issue; "" if nothing is known."""
    answer = _stored_result(bug)
    if answer is None or not is_reportable(answer):
        return ""
    noun = "commit" if "commits" in answer else "release"
    return f"### Since which {noun}\n\n{_render_result(bug, answer)}"


def summarize(bug: Bug) -> str:
    """The first bad release or commit in one sentence, for the top of an issue; "" if it is not known."""
    answer = _stored_result(bug)
    if answer is None or not is_reportable(answer):
        return ""
    sentence = format_lines(dict(answer))[0]
    return f"**First bad {'commit' if 'commits' in answer else 'release'}:** {text.plain(sentence)}."


def post_comment(session: Session, bug: Bug, issue: str, at: datetime) -> None:
    """Posts the comment after the issue that the effect `issue` files, if there is a reportable result.

    An existing comment is always updated: after a recurrence it describes the previous occurrence.
    """
    answer = _stored_result(bug)
    if answer is None or find_skip_reason(bug):
        return
    if is_reportable(answer) or session.get(Effect, comment_key(session, bug)) is not None:
        post(session, bug, [_draft_comment(session, bug, issue, answer)], at)


def update_comment(session: Session, bug: Bug, at: datetime) -> None:
    """Updates an existing comment after a requested search."""
    there, answer = session.get(Effect, comment_key(session, bug)), _stored_result(bug)
    if there is not None and answer is not None and is_reportable(answer):
        post(session, bug, [_draft_comment(session, bug, there.depends_on, answer)], at)


def is_reportable(answer: Mapping[str, Any]) -> bool:
    """Whether the result helps maintainers: a release, or that the bug is older than all tried releases.

    A result that is unreliable only because the error is reworded counts, with a note.
    """
    kind = ResultKind(answer["kind"])
    if kind is ResultKind.HORIZON:
        return not answer.get("untried")
    reworded = kind is ResultKind.UNRELIABLE and bool(answer.get("doubt"))
    return (kind in (ResultKind.FOUND, ResultKind.RANGE) or reworded) and bool(
        answer["release"] and answer["before"]
    )


def comment_key(session: Session, bug: Bug) -> str:
    """The key of the comment; a bug has one."""
    return idempotency_key(
        NOTE, targets.stable_name(session, bug.target), "bug", str(bug.id), jobs.key_word(FIRST_BAD_RELEASE)
    )


def _stored_result(bug: Bug) -> dict[str, Any] | None:
    found: dict[str, Any] | None = bug.facts.get("bisection", {}).get("since")
    return found


def _draft_comment(session: Session, bug: Bug, issue: str, answer: Mapping[str, Any]) -> EffectDraft:
    name = comment_key(session, bug)
    body = text.cut(collapse_blank_lines(_render_result(bug, answer)), MAX_NOTE)
    return EffectDraft(
        NOTE,
        name,
        bug.target,
        {"body": f"{body}\n\n{marker(name)}\n"},
        number=bug.issue,
        depends_on="" if bug.issue is not None else issue,
        editable=True,
        bug_id=bug.id,
    )


def _render_result(bug: Bug, answer: Mapping[str, Any]) -> str:
    lines, back = format_lines(dict(answer)), bugs.occurrence(bug) > 1
    return render(
        "bugs/bisection.md.j2",
        said=lines[0],
        table="\n".join(lines[1:]),
        again=rerun_command(answer),
        back=back,
        made=describe_toolchains(answer),
    )
