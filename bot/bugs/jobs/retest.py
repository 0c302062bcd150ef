"""The job `retest`: runs a bug's case on another build. `bot.bugs.transitions` applies the result."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.bugs import reproduction, transitions
from bot.bugs.reproduction import BugCase, Build
from bot.errors import RefusalError
from bot.jobs.job_context import JobContext
from bot.jobs.registry import job_kind
from bot.reports import text
from bot.store import campaigns, pulls, retests
from bot.store.models import Retest

NAME = "retest"
_SHA = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class _RetestRequest:
    """A bug, a control case that the build must pass, and the purpose."""

    known: BugCase
    control: str
    purpose: str


@job_kind(NAME)
def retest(job_context: JobContext) -> None:
    """Runs the bug's case and a control case, and applies the result unless it was only requested."""
    request = _load_request(job_context)
    place = _place(job_context, request.known, str(job_context.job_spec.arguments.get("on", "")))
    seen = reproduction.run_with_control(job_context, request.known, request.control, place)
    sentence = seen.describe(place.label + (f", commit {place.commit[:12]}" if place.commit else ""))
    with job_context.transaction() as (session, job):
        row = Retest(
            bug_id=request.known.bug.id,
            purpose=request.purpose,
            commit=place.commit,
            toolchain=place.toolchain,
            runs=seen.runs,
            failed=seen.failed + seen.other,
            control_passed=seen.control_passed,
            at=job_context.services.clock.now(),
        )
        retests.add(session, row)
        if request.purpose != "asked":
            at, last = job_context.services.clock.now(), request.known.bug.campaign_id
            transitions.apply_retest(session, row, seen, sentence, at, last_campaign=last)
        job_context.done(
            session, job, sentence, failed=seen.failed, runs=seen.runs, answer=text.plain(sentence)
        )


def _load_request(job_context: JobContext) -> _RetestRequest:
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
        control = reproduction.find_control_case(session, known)
    return _RetestRequest(known, control, str(job_context.job_spec.arguments.get("purpose", "asked")))


def _place(job_context: JobContext, known: BugCase, on: str) -> Build:
    """The build of a commit, of the head of `#12`, of a release, or of the newest tested commit."""
    commit = str(job_context.job_spec.arguments.get("commit", ""))
    if on.startswith("#"):
        commit = _head_of_pull(job_context, int(on[1:]))
    elif _SHA.fullmatch(on):
        commit = on
    elif on:
        return reproduction.build_of_release(job_context, known.campaign, on)
    with job_context.database.reading() as session:
        found = campaigns.newest(session, known.campaign.target, commit)
    if found is not None and found.head_toolchain is not None:
        return reproduction.build_at_head(job_context, found)
    if len(commit) in (40, 64):
        return reproduction.build_of_commit(job_context, known.campaign, commit)
    raise RefusalError(f"no campaign tested a commit that begins with {commit!r}; give the full id")


def _head_of_pull(job_context: JobContext, number: int) -> str:
    with job_context.database.reading() as session:
        pull = pulls.get(session, job_context.job_spec.target, number)
    if pull is None:
        raise RefusalError(f"pull request #{number} is unknown; check the number")
    return pull.head
