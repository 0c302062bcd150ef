"""Pull requests in the database: their last known state, and their jobs.

Jobs are rows of `jobs`: one of the kind EVALUATE_PULL for each pull request, restarted at every event, and
one of the kind CHECK_RUN_ACTION for each use of a button of a check run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import Campaign, CampaignState, Effect, Job, JobState, Pull

EVALUATE_PULL, CHECK_RUN_ACTION = "pull_evaluation", "check_run_action"
OPEN = "open"  # Pull.state
CHECK_RUN = "check_run"

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)
#: Fields from GitHub; approval is ours.
_GITHUB_FIELDS = (
    "head",
    "base",
    "base_ref",
    "head_repository",
    "author",
    "association",
    "draft",
    "state",
    "updated_at",
)


#: Of these, the ones that decide whether and what to test.
_DECISIVE = ("head", "base_ref", "draft", "state")


class PullRequestData(Protocol):
    """A pull request as an event or GitHub's API describes it; fields as in its row."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def head(self) -> str:
        """The commit at its head."""

    @property
    def base(self) -> str:
        """The commit at the head of the branch it is to be merged into."""

    @property
    def base_ref(self) -> str:
        """The name of that branch."""

    @property
    def head_repository(self) -> str:
        """owner/name of the head's repository, "" if it was deleted."""

    @property
    def author(self) -> str:
        """A login."""

    @property
    def association(self) -> str:
        """GitHub's author_association."""

    @property
    def draft(self) -> bool:
        """Whether it is a draft."""

    @property
    def state(self) -> str:
        """open, closed or merged."""

    @property
    def updated_at(self) -> datetime:
        """GitHub's time of this state."""


@dataclass(frozen=True)
class UpdateResult:
    """Result of an update of a pull request.

    stale             older than the stored state; nothing changed
    ambiguous         another state of the same second is stored, so the order is unknown
    revoked_approver  who had approved the head that this push replaced, "" for none
    """

    pull: Pull
    stale: bool = False
    ambiguous: bool = False
    revoked_approver: str = ""


def get(session: Session, target: str, number: int) -> Pull | None:
    """The pull request, if it is known."""
    return session.get(Pull, (target, number))


def with_head(session: Session, target: str, commit: str) -> Sequence[Pull]:
    """Pull requests that have this commit as head or approved commit."""
    is_head = or_(Pull.head == commit, Pull.approved_head == commit)
    return session.scalars(select(Pull).where(Pull.target == target, is_head).order_by(Pull.number)).all()


def row(target: str, data: PullRequestData) -> Pull:
    """A row of this data, not yet in the database."""
    return Pull(target=target, number=data.number, **{name: getattr(data, name) for name in _GITHUB_FIELDS})


def insert_if_new(session: Session, data: Pull) -> bool:
    """Stores the data if the pull request is new; returns whether it was."""
    return insert_missing(session, Pull, [_values(data)]) == 1


def update_if_newer(session: Session, data: Pull) -> UpdateResult:
    """Stores the data, unless a later state is stored.

    A new head clears the approval and the stop of the old one.
    """
    insert_if_new(session, data)
    known = session.get_one(Pull, (data.target, data.number), with_for_update=True)
    if data.updated_at < known.updated_at:
        return UpdateResult(known, stale=True)
    ambiguous = has_relevant_change(data, known) and data.updated_at == known.updated_at
    revoked_approver = ""
    if known.head != data.head:
        revoked_approver, known.approved_head, known.approved_by = known.approved_by, "", ""
        known.stopped_head = ""
        known.head_at = data.updated_at
    for name in _GITHUB_FIELDS:
        if (value := getattr(data, name)) is not None:
            setattr(known, name, value)
    return UpdateResult(known, ambiguous=ambiguous, revoked_approver=revoked_approver)


def has_relevant_change(data: Pull, known: Pull) -> bool:
    """Whether a change may affect what to test."""
    return any(getattr(data, name) != getattr(known, name) for name in _DECISIVE)


def has_same_data(one: Pull, other: Pull) -> bool:
    """Whether both have the same data."""
    return all(getattr(one, name) == getattr(other, name) for name in _GITHUB_FIELDS)


def last_evaluation_failed(session: Session, target: str, number: int) -> bool:
    """Whether the last evaluation of a pull request failed temporarily."""
    about = Job.arguments["number"].as_integer() == number
    query = select(Job).where(Job.kind == EVALUATE_PULL, Job.target == target, about)
    last = session.scalars(query.order_by(Job.id.desc()).limit(1)).first()
    return (
        last is not None
        and last.state == JobState.FAILED.value
        and not last.reason.startswith(INTERNAL_ERROR)
    )


def _values(data: Pull) -> dict[str, Any]:
    names = [column.key for column in Pull.__table__.columns]
    return {name: value for name in names if (value := getattr(data, name)) is not None}


def pending_actions(
    session: Session, target: str, number: int, actions: Collection[str], until: datetime
) -> Sequence[Job]:
    """Unfinished jobs of these buttons of a pull request's check runs, locked.

    until   only those received by then
    """
    query = (
        select(Job)
        .join(Effect, Effect.key == Job.arguments["check"].as_string())
        .outerjoin(Campaign, Campaign.id == Effect.campaign_id)
        .where(
            Job.kind == CHECK_RUN_ACTION,
            Job.target == target,
            Job.state.in_((JobState.PENDING.value, JobState.RUNNING.value)),
            Job.created_at <= until,
            Job.arguments["action"].as_string().in_(tuple(actions)),
            func.coalesce(Campaign.pull, Effect.number) == number,
        )
        .order_by(Job.id)
    )
    return session.scalars(query.with_for_update(of=Job)).all()


def campaigns_of(session: Session, target: str, number: int, head: str, base: str) -> Sequence[Campaign]:
    """The campaigns of a pull request for two commits, oldest first."""
    query = select(Campaign).where(
        Campaign.target == target, Campaign.pull == number, Campaign.head == head, Campaign.base == base
    )
    return session.scalars(query.order_by(Campaign.id)).all()


def unfinished_campaigns(session: Session) -> Sequence[Campaign]:
    """The campaigns of pull requests that have not ended, oldest first."""
    query = select(Campaign).where(Campaign.pull.is_not(None), Campaign.state.in_(_UNFINISHED))
    return session.scalars(query.order_by(Campaign.id)).all()


def lock_unfinished(session: Session, campaign_id: int) -> Campaign | None:
    """The campaign, locked, if it has not ended."""
    query = select(Campaign).where(Campaign.id == campaign_id, Campaign.state.in_(_UNFINISHED))
    return session.scalars(query.with_for_update()).one_or_none()


def before(session: Session, campaign: Campaign) -> int:
    """Number of unfinished campaigns of all targets before this one."""
    query = select(Campaign.id).where(Campaign.id < campaign.id, Campaign.state.in_(_UNFINISHED))
    return len(session.scalars(query).all())


def supersede_campaigns(
    session: Session, target: str, number: int, reason: str, at: datetime, *, except_head: str = ""
) -> list[int]:
    """Ends a pull request's unfinished campaigns, except those of `except_head`; returns their ids.

    Their outcomes stay cached: a verdict does not depend on the campaign.
    """
    query = select(Campaign).where(
        Campaign.target == target,
        Campaign.pull == number,
        Campaign.head != except_head,
        Campaign.state.in_(_UNFINISHED),
    )
    ended = session.scalars(query.with_for_update()).all()
    for campaign in ended:
        campaign.state, campaign.reason, campaign.updated_at = CampaignState.SUPERSEDED.value, reason, at
        campaign.owner, campaign.lease_until = "", None
    session.flush()
    return [campaign.id for campaign in ended]


def ended_with_open_check_run(session: Session, since: datetime) -> Sequence[Campaign]:
    """Campaigns of pull requests, ended since then, whose check run is still in progress."""
    query = (
        select(Campaign)
        .join(Effect, Effect.campaign_id == Campaign.id)
        .where(
            Campaign.pull.is_not(None),
            Campaign.state.not_in(_UNFINISHED),
            Campaign.updated_at >= since,
            Effect.kind == CHECK_RUN,
            Effect.payload["status"].as_string() != "completed",
        )
        .order_by(Campaign.id)
    )
    return session.scalars(query).all()


def find_check_runs(session: Session, target: str, head: str, external_id: str) -> list[Effect]:
    """Our check run with this external id, or without one the newest of a commit; [] for none."""
    ours = select(Effect).where(Effect.kind == CHECK_RUN, Effect.target == target)
    if external_id:
        return list(session.scalars(ours.where(Effect.key == external_id)))
    latest = ours.where(Effect.payload["head_sha"].as_string() == head).order_by(Effect.created_at.desc())
    return list(session.scalars(latest.limit(1)))
