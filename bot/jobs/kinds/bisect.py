"""`bisect`: the commit and the release in which a bug began, and the release in which it ended, if it did."""

from __future__ import annotations

from typing import Any

from bot.bisection.commits import sentence
from bot.bisection.telling import lines
from bot.bugs import since
from bot.jobs import blaming, running
from bot.jobs.doing import Doing
from bot.jobs.registry import kind
from bot.jobs.releasing import Asking, between
from bot.jobs.running import Known
from bot.reports import text
from bot.store import bugs, jobs
from bot.store.models import Bug


@kind("bisect")
def bisect(doing: Doing) -> None:
    """Asks when it began; and when it ended, where the newest release does not show it."""
    with doing.database.reading() as session:
        known = running.known(session, doing)
    asked = str(doing.errand.arguments.get("releases") or "")
    asking = Asking(doing, known, between(doing, known, asked))
    answers = {"since": asking.began()}
    brought = None if asked else _brought(doing, known)
    if _gone(answers["since"]):
        answers["until"] = asking.ended()
    with doing.transaction() as (session, job):
        facts = answers | ({"commits": brought} if brought else {})
        bug = session.get_one(Bug, known.bug.id)
        if bugs.lives(bug) != bugs.lives(known.bug):
            jobs.release(job)  # that was its last life: this one is asked about anew
            return
        bugs.learn(session, bug, "bisection", _commits(bug) | facts)
        since.correct(session, bug, doing.services.clock.now())
        said = ". ".join(
            [*([sentence(brought)] if brought else []), *(lines(one)[0] for one in answers.values())]
        )
        shown = "\n\n".join(text.fence("\n".join(lines(one))) for one in answers.values())
        doing.done(session, job, said, answer=f"{text.plain(said)}\n\n{shown}", **facts)


def _brought(doing: Doing, known: Known) -> dict[str, Any] | None:
    """Which commit brought it, asked once: each may cost a build. Kept at once, whatever comes then."""
    there: dict[str, Any] = _commits(known.bug).get("commits", {})
    if there.get("commit") and there.get("before"):
        return there
    brought = blaming.brought(doing, known)
    if brought:
        with doing.transaction() as (session, _):
            bug = session.get_one(Bug, known.bug.id)
            if bugs.lives(bug) == bugs.lives(known.bug):
                answers = {**bug.facts.get("bisection", {}), "commits": brought}
                bugs.learn(session, bug, "bisection", answers)
    return brought


def _commits(bug: Bug) -> dict[str, Any]:
    """What is known of the commits, which an answer about releases leaves as it is."""
    return {name: told for name, told in bug.facts.get("bisection", {}).items() if name == "commits"}


def _gone(answer: dict[str, Any]) -> bool:
    """Whether the newest release that was tried passes."""
    rows = answer["probed"]
    return bool(rows) and rows[-1]["bad"] == 0 and rows[-1]["good"] > 0
