"""`retest`: does a bug still fail on another build? What that means for it is decided with its rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.bugs import changing
from bot.errors import RefusalError
from bot.jobs import running
from bot.jobs.doing import Doing
from bot.jobs.registry import kind
from bot.jobs.running import Known, Place
from bot.reports import text
from bot.store import campaigns, pulls, retests
from bot.store.models import Retest

NAME = "retest"
_SHA = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class _Asked:
    """What the job is about: a bug, a build, a case that this build must pass."""

    known: Known
    control: str
    purpose: str


@kind(NAME)
def retest(doing: Doing) -> None:
    """Runs the bug's case, and one that must pass, and lets the result happen to the bug."""
    asked = _asked(doing)
    place = _place(doing, asked.known, str(doing.errand.arguments.get("on", "")))
    seen = running.tallied(doing, asked.known, asked.control, place)
    said = seen.told(place.label + (f", commit {place.commit[:12]}" if place.commit else ""))
    with doing.transaction() as (session, job):
        row = Retest(
            bug_id=asked.known.bug.id,
            purpose=asked.purpose,
            commit=place.commit,
            toolchain=place.toolchain,
            runs=seen.runs,
            failed=seen.failed + seen.other,
            healthy=seen.healthy,
            at=doing.services.clock.now(),
        )
        retests.add(session, row)
        if asked.purpose != "asked":
            at, last = doing.services.clock.now(), asked.known.bug.campaign_id
            changing.after_retest(session, row, seen, said, at, last=last)
        doing.done(session, job, said, failed=seen.failed, runs=seen.runs, answer=text.plain(said))


def _asked(doing: Doing) -> _Asked:
    with doing.database.reading() as session:
        known = running.known(session, doing)
        control = running.control(session, known)
    return _Asked(known, control, str(doing.errand.arguments.get("purpose", "asked")))


def _place(doing: Doing, known: Known, on: str) -> Place:
    """The build that is meant: a commit, `#12`, a release, or the newest commit that was tested."""
    commit = str(doing.errand.arguments.get("commit", ""))
    if on.startswith("#"):
        commit = _head_of_pull(doing, int(on[1:]))
    elif _SHA.fullmatch(on):
        commit = on
    elif on:
        return running.at_release(doing, known.campaign, on)
    with doing.database.reading() as session:
        found = campaigns.newest(session, known.campaign.target, commit)
    if found is not None and found.head_toolchain is not None:
        return running.at_head(doing, found)
    if len(commit) in (40, 64):
        return running.at_commit(doing, known.campaign, commit)
    raise RefusalError(f"no campaign tested a commit that begins with {commit!r}; name it in full")


def _head_of_pull(doing: Doing, number: int) -> str:
    with doing.database.reading() as session:
        pull = pulls.get(session, doing.errand.target, number)
    if pull is None:
        raise RefusalError(f"nothing is known of pull request #{number}")
    return pull.head
