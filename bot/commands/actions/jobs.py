"""`/assay reduce`, `bisect`, `test`: long work, asked for here and answered in this thread when done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.commands import values
from bot.commands.asking import Asked, Place, Receipt, refused
from bot.commands.grammar import Argument
from bot.commands.registry import OURS, action
from bot.jobs.answering import NUMBER
from bot.reports import text
from bot.reports.templating import counted
from bot.store import Session, bugs, findings
from bot.store.models import Bug

_BUGS_AND_PULLS = frozenset({Place.BUG, Place.PULL})
#: Ours: what one command on a pull request may set going; the others can be asked for on their issues.
MAX_JOBS = 5


@action(
    "reduce",
    "Spends more time on making the failing program small; on a pull request, those of all its findings.",
    Argument("budget", "DURATION", values.duration),
    places=_BUGS_AND_PULLS,
)
def reduce(session: Session, asked: Asked) -> Receipt:
    """Asks for a reduction of each bug that is meant."""
    return _ask(session, asked, "reduce", {"budget": asked.values.get("budget", 0.0)})


@action(
    "bisect",
    "Finds the release with which it began, and the one with which it ended if it did.",
    Argument("releases", "FROM..TO", values.releases),
    places=_BUGS_AND_PULLS,
)
def bisect(session: Session, asked: Asked) -> Receipt:
    """Asks for a bisection of each bug that is meant."""
    return _ask(session, asked, "bisect", {"releases": asked.values.get("releases", "")})


@action(
    "test",
    "Runs the bug's program on something else and tells whether it fails there: a pull request, a commit, "
    "a release. Without one, on the newest commit.",
    Argument("on", "#PR or SHA or RELEASE", values.revision, word=True),
    places=OURS,
)
def test(session: Session, asked: Asked) -> Receipt:
    """Asks for a retest."""
    return _ask(session, asked, "retest", {"purpose": "asked", "on": asked.values.get("on", "")})


def _ask(session: Session, asked: Asked, kind: str, arguments: Mapping[str, Any]) -> Receipt:
    meant = [asked.bug] if asked.bug is not None else bugs.of_pull(session, asked.target, asked.number)
    able = [bug for bug in meant if bug.case_id or findings.case_of(session, bug.id)]
    if not able:
        return refused(
            "There is no failing program to work on here yet."
            if meant or asked.pull
            else "No bug of ours is meant by this."
        )
    for bug in able[:MAX_JOBS]:
        _ask_one(session, asked, kind, bug, arguments)
    left = len(able) - MAX_JOBS
    said = f"{counted(len(able), 'bug')} here; the first {MAX_JOBS} are worked on" if left > 0 else ""
    why = f"{kind} asked for {counted(min(len(able), MAX_JOBS), 'bug')}"
    subject = f"bug:{able[0].id}" if len(able) == 1 else ""
    return Receipt(text.plain(said), at_work=True, why=why, subject=subject)


def _ask_one(session: Session, asked: Asked, kind: str, bug: Bug, arguments: Mapping[str, Any]) -> None:
    asked.tools.ask(
        session,
        kind,
        asked.target,
        f"{kind}:{bug.id}:{asked.comment}:{asked.position}",
        bug_id=bug.id,
        arguments={**arguments, NUMBER: asked.number},
        asked_by=asked.author,
    )
