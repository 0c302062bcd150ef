"""The job `reduce`: spends more time on reducing a bug's case, and stores a smaller one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bot.bugs import reproduction
from bot.bugs.reproduction import BugCase
from bot.campaigns.provenance import origin
from bot.campaigns.reduce.case_reduction import PROGRAM, traits_from_json
from bot.errors import RunnerError, UsageError
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.reports import text
from bot.reports.templates import pluralize
from bot.store import bugs, outcomes
from bot.store.bugs import Sighting
from bot.store.models import Bug
from fuzzing.outcomes import Outcome, Verdict

#: Seconds: the default and the maximum of a request.
BUDGET_S, MAX_BUDGET_S = 600.0, 3600.0


@job_kind("reduce")
def reduce(job_context: JobContext) -> None:
    """Reduces the smallest known case of the bug further."""
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
    place = reproduction.build_at_head(job_context, known.campaign)
    seconds = min(float(job_context.job_spec.arguments.get("budget") or BUDGET_S), MAX_BUDGET_S)
    name = f"{known.case[:16]}-{place.toolchain[:16]}-job.jsonl"
    journal = job_context.settings.data_dir / "reductions" / name
    journal.parent.mkdir(parents=True, exist_ok=True)
    given = ["--seconds", f"{seconds:.0f}", "--journal", str(journal)]
    end = _end_event(reproduction.run_program(job_context, known.config, place, known.case, PROGRAM, *given))
    outcome = Outcome.from_json(end["outcome"])
    traits = traits_from_json(end["traits"])
    about = origin(job_context.corpus, outcome.case)
    signature = job_context.services.sign(outcome, about.subject, about.frontend, traits)
    by = Sighting(
        known.campaign.id,
        case=outcome.case,
        backend=outcome.backend,
        device=outcome.device,
        configuration=outcome.configuration,
        traits=asdict(traits),
        fields=signature.fields,
    )
    shrunk = bool(end["confirmed"]) and list(end["after"]) < list(end["before"])
    mismatch = _mismatch_reason(job_context, known, outcome.case) if shrunk else ""
    with job_context.transaction() as (session, job):
        outcomes.record(session, [outcome], job_context.services.clock.now())
        bug = session.get_one(Bug, known.bug.id)
        why_not = mismatch or (_replaced_reason(known, bug) if shrunk else "")
        smaller = shrunk and not why_not and bugs.replace_case(session, bug, by)
        sentence = why_not or _summary_line(end, smaller=smaller)
        job_context.done(session, job, sentence, case=outcome.case, answer=text.plain(sentence))


def _replaced_reason(known: BugCase, bug: Bug) -> str:
    """Why a smaller case is outdated: the bug has another case by now; "" if it is not."""
    if bug.case_id == known.bug.case_id:
        return ""
    return (
        f"the bug has another case by now, {bug.case_id[:12]}: the smaller one of the previous case is "
        "dropped; `/assay reduce` reduces the new case"
    )


def _mismatch_reason(job_context: JobContext, known: BugCase, case: str) -> str:
    """Why a smaller case is another bug: it fails at base, where the known case passes; "" if it does not.

    Such a case would fail on every build that fixes the bug.
    """
    base = reproduction.build_at_base(job_context, known.campaign)
    if base is None:
        return ""
    seen = reproduction.run_cases(job_context, known.config, base, [known.case, case], 1)
    before, after = (seen[one][0] for one in (known.case, case))
    if before.verdict is not Verdict.PASS or after.verdict is Verdict.PASS:
        return ""
    return f"the smaller case {case[:12]} fails on {base.label}, where the known one passes: dropped"


def _end_event(events: list[dict[str, Any]]) -> dict[str, Any]:
    found = [one for one in events if one.get("event") == "end"]
    for one in events:
        if one.get("event") == "unreducible":
            raise UsageError(str(one["reason"]))
    if not found:
        raise RunnerError(f"{PROGRAM} ended before its end event; Assay's log has more")
    return found[-1]


def _summary_line(end: dict[str, Any], *, smaller: bool) -> str:
    runs = pluralize(int(end["runs"]), "run")
    if smaller:
        return f"smaller after {runs}: size {end['before'][0]:g} is now {end['after'][0]:g}"
    if not end["confirmed"]:
        return f"unchanged after {runs}: the smallest case did not fail in a fresh process"
    minimal = "; the case is minimal" if end.get("minimal") else ""
    return f"no smaller after {runs}{minimal}"
