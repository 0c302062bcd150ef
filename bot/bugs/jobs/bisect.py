"""The job `bisect`: the commit and the release that introduced a bug, and the release that fixed it."""

from __future__ import annotations

from typing import Any

from bot.bisection.commits import describe_result
from bot.bisection.report import format_lines
from bot.bisection.search import ResultKind
from bot.bugs import change_search, culprit, first_bad_release, reproduction
from bot.bugs.release_bisection import ReleaseBisection, release_range
from bot.bugs.reproduction import BugCase
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.reports import text
from bot.store import bugs, jobs
from bot.store.models import Bug


@job_kind("bisect")
def bisect(job_context: JobContext) -> None:
    """Searches the first bad release; the first fixed one too, if the newest release passes."""
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
    requested = str(job_context.job_spec.arguments.get("releases") or "")
    search = ReleaseBisection(job_context, known, release_range(job_context, known, requested))
    answers = {"since": change_search.find_introduction(search)}
    culprit_commit = None if requested else _find_culprit(job_context, known)
    if _is_fixed_in_newest(answers["since"]):
        answers["until"] = change_search.find_fix(search)
    with job_context.transaction() as (session, job):
        facts = answers | ({"commits": culprit_commit} if culprit_commit else {})
        bug = session.get_one(Bug, known.bug.id)
        if bugs.occurrence(bug) != bugs.occurrence(known.bug):
            jobs.release_lease(job)  # the bug recurred meanwhile: search again
            return
        bugs.set_fact(session, bug, "bisection", _known_commits(bug) | facts)
        first_bad_release.update_comment(session, bug, job_context.services.clock.now())
        sentence = ". ".join(
            [
                *([describe_result(culprit_commit)] if culprit_commit else []),
                *(format_lines(one)[0] for one in answers.values()),
            ]
        )
        shown = "\n\n".join(text.fence("\n".join(format_lines(one))) for one in answers.values())
        job_context.done(session, job, sentence, answer=f"{text.plain(sentence)}\n\n{shown}", **facts)


def _find_culprit(job_context: JobContext, known: BugCase) -> dict[str, Any] | None:
    """The commit that introduced the bug. Searched once, as each commit may cost a build; stored at once."""
    there: dict[str, Any] = _known_commits(known.bug).get("commits", {})
    if there.get("commit") and there.get("before"):
        return there
    culprit_commit = culprit.find_culprit(job_context, known)
    if culprit_commit:
        with job_context.transaction() as (session, _):
            bug = session.get_one(Bug, known.bug.id)
            if bugs.occurrence(bug) == bugs.occurrence(known.bug):
                answers = {**bug.facts.get("bisection", {}), "commits": culprit_commit}
                bugs.set_fact(session, bug, "bisection", answers)
    return culprit_commit


def _known_commits(bug: Bug) -> dict[str, Any]:
    """The stored result for commits, which a result for releases keeps."""
    return {name: value for name, value in bug.facts.get("bisection", {}).items() if name == "commits"}


def _is_fixed_in_newest(answer: dict[str, Any]) -> bool:
    """Whether the newest release that was tried passes, and an older one fails."""
    if "commits" in answer:
        answer = answer.get("releases_answer") or {"probed": []}
        if answer.get("kind") == ResultKind.NEVER.value:
            return False  # a commit after that release brought it
    rows = answer["probed"]
    return bool(rows) and rows[-1]["bad"] == 0 and rows[-1]["good"] > 0
