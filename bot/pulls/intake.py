"""What GitHub and people say of a pull request becomes rows, in the transaction that brought it.

Nothing here reaches the network: what has to be asked of GitHub or git is done by `bot.pulls.looking`,
which a row of `jobs` sets going.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.reports.buttons import RERUN
from bot.reports.report import key
from bot.store import Session, audit, jobs, now, pulls
from bot.store.campaigns import after_commit
from bot.store.models import Job, JobState, Pull
from bot.store.pulls import LOOK, OPEN, Remembered
from bot.webhooks.intents import PullIntent

log = structlog.get_logger(__name__)

#: A push within this time after another one spares the first one's campaign: in a storm only the last counts.
SETTLE = timedelta(seconds=1)

#: What GitHub and we call the buttons that ask for another test.
AGAIN = (RERUN.identifier, "rerequested")
#: Of a press that waits, why it is not to be heeded any more.
STOPPED = "stopped"

#: What somebody wants of a pull request's head, beside what every event brings about.
_WISH = ("again", "overrides", "asked_by", "head")

Wake = Callable[[], None]


def handle(
    session: Session, intent: PullIntent, *, wake: Wake | None = None, settle: timedelta = SETTLE
) -> Pull:
    """Keeps what was told, unless something later is known.

    Closing ends the campaigns; after all else the pull request is looked at.
    """
    at = now()
    return follow(session, pulls.row(intent.target, intent), at, wake=wake, settle=settle)


def follow(
    session: Session, told: Pull, at: datetime, *, wake: Wake | None = None, settle: timedelta = SETTLE
) -> Pull:
    """What `handle` does, for whoever learned of the pull request in another way."""
    known = remembered(session, told, at)
    if known.stale:
        log.info("pull_stale", target=told.target, pull=told.number)
        return told
    pull = known.pull
    if pull.state == OPEN and not known.unclear:  # whatever is decided of this head: looks may take a while
        end(session, pull, overtaken_by(pull), at, sparing=pull.head)
    if pull.state == OPEN or known.unclear:  # GitHub is asked which of the two is the later
        look(session, pull.target, pull.number, at + settle, at, wake=wake)
    if pull.state != OPEN:
        close(session, pull, at)
    return pull


def remembered(session: Session, told: Pull, at: datetime) -> Remembered:
    """The row, brought up to date unless something later is known.

    A push voids the last head's release.
    """
    known = pulls.remember(session, told)
    if known.voided:
        why = f"a new push: {told.head[:12]} has not been released"
        audit.record(session, told.target, "voided", subject(told.number), why, at)
    return known


def close(session: Session, pull: Pull, at: datetime) -> None:
    """Ends the campaigns of a pull request that is closed or merged.

    Their check runs are finished by `bot.pulls.checking`.
    """
    end(session, pull, f"pull request #{pull.number} was {pull.state}", at)


def end(session: Session, pull: Pull, why: str, at: datetime, *, sparing: str = "") -> None:
    """Ends the campaigns of a pull request, but those of the head `sparing`, and says so in the audit."""
    for campaign in pulls.end(session, pull.target, pull.number, why, at, sparing=sparing):
        audit.record(session, pull.target, "ended", f"campaign:{campaign}", why, at)


def stop(
    session: Session, pull: Pull, why: str, said: datetime, at: datetime, *, wake: Wake | None = None
) -> int:
    """Ends the campaigns of a pull request, and what waits to become one; how many there were.

    Its present head is not tested until somebody asks for that: no event that comes later may bring it back,
    nor may a press of a button that came before.

    said   when we heard of the wish to stop. GitHub tells no time of a press: the order in which we heard of
           both is the nearest there is to the order in which people acted
    """
    ended = len(pulls.end(session, pull.target, pull.number, why, at))
    presses = pulls.presses(session, pull.target, pull.number, AGAIN, said)
    for press in presses:
        press.arguments = press.arguments | {STOPPED: why}
    waits = _forget_wish(session, pull, at)
    if not ended and not presses and not waits:
        return 0
    pull.stopped_head = pull.head
    if wake is not None:
        after_commit(session, wake)
    return ended or 1


def _forget_wish(session: Session, pull: Pull, at: datetime) -> bool:
    """Leaves a look nothing to fulfil; whether one waits, is under way, or was given up with its wish.

    One that is under way has decided for a test already, perhaps: its turn is over.
    """
    name = key(LOOK, pull.target, str(pull.number))
    job, plain = jobs.of_key(session, name), {"number": pull.number}
    if job is None or (not jobs.at_work(job) and not _kept(session, name)):
        return False
    if jobs.at_work(job):
        jobs.ask(session, LOOK, pull.target, name, at, due=at, again=True, arguments=plain)
    else:
        job.arguments = plain | {"turn": jobs.turn(job)}
    return True


def overtaken_by(pull: Pull) -> str:
    """Why campaigns of other heads than its present one end."""
    return f"superseded: {pull.head[:12]} is the head of #{pull.number} now"


def look(
    session: Session,
    target: str,
    number: int,
    due: datetime,
    at: datetime,
    *,
    again: str = "",
    asked_by: str = "",
    overrides: Mapping[str, Any] | None = None,
    wake: Wake | None = None,
) -> Job:
    """Has the pull request looked at when `due` has come.

    again      why the head it has now is to be tested even if it has been, "" if that is no reason
    overrides  fields of the configuration that whoever asks wants otherwise
    """
    name = key(LOOK, target, str(number))
    wish = _wish(session, target, number, again, overrides or {}, asked_by) if again else _kept(session, name)
    arguments = {"number": number, **wish}
    job = jobs.ask(
        session, LOOK, target, name, at, due=due, again=True, arguments=arguments, asked_by=asked_by
    )
    if wake is not None:
        after_commit(session, wake)
    return job


def _wish(
    session: Session, target: str, number: int, again: str, overrides: Mapping[str, Any], asked_by: str
) -> dict[str, Any]:
    """What somebody wants of the present head, also one that was stopped."""
    known = pulls.get(session, target, number)
    head = known.head if known is not None else ""
    if known is not None:
        known.stopped_head = ""
    return {"again": again, "overrides": dict(overrides), "asked_by": asked_by, "head": head}


def _kept(session: Session, name: str) -> dict[str, Any]:
    """A wish that nobody has fulfilled yet: no event may wipe it out."""
    job = jobs.of_key(session, name)
    if job is None or job.state == JobState.DONE.value:
        return {}
    return {field: job.arguments[field] for field in _WISH if field in job.arguments}


def approve(
    session: Session,
    pull: Pull,
    head: str,
    by: str,
    at: datetime,
    *,
    wake: Wake | None = None,
) -> bool:
    """Releases commit `head` of a pull request, and no other; False if it is not its head any more.

    The caller has made sure that `by` has write access.
    """
    if pull.head != head:
        return False
    pull.approved_head, pull.approved_by = head, by
    why = f"{by} released commit {head[:12]}"
    audit.record(session, pull.target, "approved", subject(pull.number), why, at, who=by)
    look(session, pull.target, pull.number, at, at, asked_by=by, wake=wake)
    return True


def subject(number: int) -> str:
    """A pull request in the audit."""
    return f"pull:{number}"
