"""The job `localize`: finds where in the compiler a bug's case fails, and stores it with the bug."""

from __future__ import annotations

from typing import Any

from bot.bugs import reproduction
from bot.bugs.issue_filing import LOCALIZE
from bot.errors import RunnerError
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.reports import text
from bot.store import bugs
from bot.store.models import Bug

PROGRAM = "fuzzing.localize"
#: The limits of one bug; the program enforces them.
RUNS, SECONDS = 500, 300


@job_kind(LOCALIZE)
def localize(job_context: JobContext) -> None:
    """Runs the program and stores its facts."""
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
    place = reproduction.build_at_head(job_context, known.campaign)
    budget = ["--runs", str(RUNS), "--seconds", str(SECONDS)]
    events = reproduction.run_program(job_context, known.config, place, known.case, PROGRAM, *budget)
    if not any(one.get("event") == "end" for one in events):
        raise RunnerError(f"{PROGRAM} ended before its end event; Assay's log has more")
    facts = [_fact(one) for one in events if one.get("event") == "fact"]
    with job_context.transaction() as (session, job):
        localization = {
            "facts": facts,
            "toolchain": place.toolchain,
            "label": place.label,
            "case": known.case,
        }
        bug = session.get_one(Bug, known.bug.id)
        if not _is_answered(bug, known.case):
            bugs.set_fact(session, bug, "localization", localization)
        sentence = _summary_line(facts)
        job_context.done(session, job, sentence, facts=facts, answer=text.plain(sentence))


def _is_answered(bug: Bug, case: str) -> bool:
    """Whether the bug has another case by now, with facts of its own."""
    return bug.case_id not in ("", case) and bug.facts.get("localization", {}).get("case") == bug.case_id


def _fact(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": str(event.get("what", "")),
        "found": [str(name) for name in event.get("found", ())],
        "how": str(event.get("how", "")),
        "confirmed": event.get("confirmed"),
    }


def _summary_line(facts: list[dict[str, Any]]) -> str:
    found = [f"{one['what']}: {', '.join(one['found'])}" for one in facts if one["found"]]
    return "; ".join(found) if found else "no part of the compiler was identified"
