"""Closes stale bugs: not seen for long, and not shown by their program.

Syzbot's rule (dashboard/app, obsoleting): sightings are modeled as a Poisson process. A bug is stale after
three times the silence that has a probability of 1 %, within limits. Its program is run again before, and
the bug stays open while it fails.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from enum import Enum

from bot.bugs import issue_updates
from bot.bugs.transitions import RETEST, request_retest
from bot.store import Session, bugs, campaigns, findings, jobs, outbox, retests
from bot.store.bug_states import Event
from bot.store.models import Bug, JobState

#: The probability of the silence, and the multiple of that time.
MAX_PROBABILITY, SAFETY_FACTOR = 0.01, 3
#: With fewer sightings there is no rate, and MAX_SILENCE applies.
MIN_SIGHTINGS = 10
MIN_SILENCE, MAX_SILENCE = timedelta(days=14), timedelta(days=100)


class ReproducerStatus(Enum):
    """The state of a bug's program since its last sighting; the values are parts of sentences."""

    NONE = "it has no program to run"
    NOT_RUN = "its program has not run since"
    REPRODUCES = "its program still shows it"
    PASSES = "its program passed when it last ran"
    NOT_RUNNABLE = "its program can no longer be run"


def compute_silence_limit(first: datetime, last: datetime, seen: int) -> timedelta:
    """The silence after which a bug is stale that was seen `seen` times between `first` and `last`."""
    if seen < MIN_SIGHTINGS or last <= first:
        return MAX_SILENCE
    mean = (last - first) / (seen - 1)
    wait = mean * -math.log(MAX_PROBABILITY) * SAFETY_FACTOR
    return min(max(wait, MIN_SILENCE), MAX_SILENCE)


def get_reproducer_status(session: Session, bug: Bug) -> ReproducerStatus:
    """The result of the last run of its program, or why there was none."""
    newer_retests = [row for row in retests.of_bug(session, bug.id) if row.at > bug.last_seen]
    failed = jobs.last_of(session, RETEST, bug.id, JobState.FAILED)
    if failed is not None and (failed.done_at is None or failed.done_at <= bug.last_seen):
        failed = None
    if newer_retests and (failed is None or failed.done_at is None or failed.done_at < newer_retests[-1].at):
        if retests.passed(newer_retests[-1]):
            return ReproducerStatus.PASSES
        return (
            ReproducerStatus.REPRODUCES if newer_retests[-1].control_passed else ReproducerStatus.NOT_RUNNABLE
        )
    if failed is not None:
        return ReproducerStatus.NOT_RUNNABLE
    return (
        ReproducerStatus.NOT_RUN
        if bug.case_id or findings.case_of(session, bug.id)
        else ReproducerStatus.NONE
    )


def close_if_stale(session: Session, bug: Bug, at: datetime) -> bool:
    """Closes a stale bug, or requests a run of its program first; whether it was closed."""
    silence = at - bug.last_seen
    if silence < compute_silence_limit(bug.first_seen, bug.last_seen, bug.seen):
        return False
    state = get_reproducer_status(session, bug)
    if state is ReproducerStatus.NOT_RUN and _request_retest(session, bug, at):
        return False
    if state is ReproducerStatus.REPRODUCES:
        return False
    not_seen = f"it was not seen for {silence.days} days"
    why = (
        f"{state.value}, and {not_seen}"
        if state is ReproducerStatus.PASSES
        else f"{not_seen}, and {state.value}"
    )
    outbox.withdraw(session, bug.id, why)
    bugs.apply_event(session, bug, Event.CLOSED, f"obsolete: {why}", at)
    if bug.issue is not None:
        issue_updates.post(session, bug, issue_updates.draft_obsolete(session, bug, why), at)
    return True


def _request_retest(session: Session, bug: Bug, at: datetime) -> bool:
    """Requests a run of its program on the newest build of its branch; False if there is none."""
    seen = campaigns.find(session, bug.campaign_id)
    newest = campaigns.newest(session, bug.target, "", seen.ref if seen is not None else "")
    if newest is None:
        return False
    once = f"{RETEST}:{bug.id}:silent:{bug.seen}:{newest.head[:24]}"  # for each silence
    request_retest(session, bug, newest, once, "obsolete", at)
    return True
