"""`localise`: where in the compiler a bug's case goes wrong; kept with the bug."""

from __future__ import annotations

from typing import Any

from bot.bugs.filing import LOCALISE
from bot.errors import RunnerError
from bot.jobs import running
from bot.jobs.doing import Doing
from bot.jobs.registry import kind
from bot.reports import text
from bot.store import bugs
from bot.store.models import Bug

PROGRAM = "fuzzing.localise"
#: Ours: what one bug may cost here; the program stops by itself.
RUNS, SECONDS = 500, 300


@kind(LOCALISE)
def localise(doing: Doing) -> None:
    """Asks the program, and keeps its facts."""
    with doing.database.reading() as session:
        known = running.known(session, doing)
    place = running.at_head(doing, known.campaign)
    budget = ["--runs", str(RUNS), "--seconds", str(SECONDS)]
    events = running.tool(doing, known.config, place, known.case, PROGRAM, *budget)
    if not any(one.get("event") == "end" for one in events):
        raise RunnerError(f"{PROGRAM} ended before its end event; Assay's log has more")
    facts = [_fact(one) for one in events if one.get("event") == "fact"]
    with doing.transaction() as (session, job):
        told = {"facts": facts, "toolchain": place.toolchain, "label": place.label, "case": known.case}
        bug = session.get_one(Bug, known.bug.id)
        if not _is_answered(bug, known.case):
            bugs.learn(session, bug, "localisation", told)
        said = _said(facts)
        doing.done(session, job, said, facts=facts, answer=text.plain(said))


def _is_answered(bug: Bug, case: str) -> bool:
    """Whether the same is known of the case that the bug has by now, where that is another than this one."""
    return bug.case_id not in ("", case) and bug.facts.get("localisation", {}).get("case") == bug.case_id


def _fact(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": str(event.get("what", "")),
        "found": [str(name) for name in event.get("found", ())],
        "how": str(event.get("how", "")),
        "confirmed": event.get("confirmed"),
    }


def _said(facts: list[dict[str, Any]]) -> str:
    found = [f"{one['what']}: {', '.join(one['found'])}" for one in facts if one["found"]]
    return "; ".join(found) if found else "nothing more than the compiler as a whole can be named"
