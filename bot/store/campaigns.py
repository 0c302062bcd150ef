"""Campaigns in the database: creating, claiming, renewing, moving on.

A lease is (`owner`, `lease_until`). A campaign is due when it has not ended and its lease is empty or
over; a back-off is a lease without an owner. Every write of a step goes through `lock_held`, which refuses
when the lease or the campaign was taken away meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import CursorResult, bindparam, case, delete, event, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session as Session
from sqlalchemy.orm import aliased

from bot.errors import InternalError
from bot.leases import LeaseLost
from bot.store.models import Base, Campaign, CampaignCase, CampaignState, Side, Toolchain
from bot.store.step_cost import StepCost

#: Rows of one INSERT; bounds memory, far below SQLite's 32,766 bound variables.
CHUNK = 500
#: Characters of `Campaign.trigger` at most.
_TRIGGER = 64

T = TypeVar("T")

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)

# Made once, as every push needs it: to put it together costs more than to run it.
_SUPERSEDE = (
    update(Campaign)
    .where(
        Campaign.target == bindparam("of_target"),
        Campaign.trigger == bindparam("of_trigger"),
        Campaign.ref == bindparam("of_ref"),
        Campaign.id < bindparam("newer"),
        Campaign.state.in_(_UNFINISHED),
    )
    .values(
        state=CampaignState.SUPERSEDED.value,
        reason=bindparam("why"),
        owner="",
        lease_until=None,
        updated_at=bindparam("at"),
    )
    .returning(Campaign.id)
    .execution_options(synchronize_session="fetch")  # its parameters are not known where "auto" would compare
)


def create(session: Session, row: Campaign) -> tuple[Campaign, bool]:
    """The campaign for (target, head, base, trigger): `row` if it is the first one, else the old one.

    The flag says whether it is new. An old one that was superseded makes room where another delivery asks
    for the same: the branch has been elsewhere and is back.
    """
    values = {
        column.key: value
        for column in Campaign.__table__.columns
        if (value := getattr(row, column.key)) is not None
    }
    made = _insert(session, values)
    if made is not None:
        return made, True
    # A base that was not given is "", as the column's default says.
    same = [
        getattr(Campaign, name) == (getattr(row, name) or "")
        for name in ("target", "head", "base", "trigger")
    ]
    found = session.scalars(select(Campaign).where(*same)).one()
    if found.state == CampaignState.SUPERSEDED.value and not _is_same_delivery(row, found):
        _free_trigger(session, found)
        made = _insert(session, values)
    return made or found, made is not None


def _insert(session: Session, values: dict[str, Any]) -> Campaign | None:
    """The campaign's row as it is in the database now; None where there is one for the same."""
    insertion = insert_ignoring_conflicts(session.get_bind().dialect.name, Campaign).returning(Campaign)
    return session.scalars(insertion, [values]).one_or_none()


def _is_same_delivery(row: Campaign, known: Campaign) -> bool:
    """Whether one delivery asks for both; what was found out by looking has none, and is looked for once."""
    return bool(row.delivery) and row.delivery == known.delivery


def _free_trigger(session: Session, campaign: Campaign) -> None:
    """Gives what asked for the campaign a name of its own: it is unique, with target and commits."""
    own = f":{campaign.id}"
    campaign.trigger = campaign.trigger[: _TRIGGER - len(own)] + own
    session.flush()


def get(session: Session, campaign_id: int) -> Campaign:
    """The campaign of this id; raises InternalError if there is none."""
    campaign = session.get(Campaign, campaign_id)
    if campaign is None:
        raise InternalError(f"there is no campaign {campaign_id}")
    return campaign


#: Branches that a merge queue makes and drops: like a pull request's, their commits may never be merged.
MERGE_QUEUE_PREFIX = "refs/heads/gh-readonly-queue/"


def on_branch(pull: int | None, ref: str) -> bool:
    """Whether a campaign tested a commit that is in a branch for good, not one that might be merged."""
    return pull is None and not ref.startswith(MERGE_QUEUE_PREFIX)


def find(session: Session, campaign_id: int | None) -> Campaign | None:
    """The campaign of that id, if it is still there."""
    return session.get(Campaign, campaign_id) if campaign_id is not None else None


def newest(session: Session, target: str, commit: str, ref: str = "") -> Campaign | None:
    """The newest campaign of a branch of the target that had a build of a commit that begins so.

    ref   of this branch alone, "" for any
    """
    query = select(Campaign).where(
        Campaign.target == target,
        Campaign.pull.is_(None),
        Campaign.ref.not_like(f"{MERGE_QUEUE_PREFIX}%"),
        Campaign.head_toolchain.is_not(None),
        Campaign.head.startswith(commit, autoescape=True),
    )
    if ref:
        query = query.where(Campaign.ref == ref)
    return session.scalars(query.order_by(Campaign.id.desc()).limit(1)).first()


def supersede(session: Session, newer: Campaign, at: datetime) -> int:
    """Ends older unfinished campaigns of the same target, trigger and ref; returns how many.

    Their outcomes stay: a verdict is true whatever became of the campaign that asked for it.
    """
    reason = f"superseded: {newer.head[:12]} was pushed to {newer.ref or newer.trigger} (campaign {newer.id})"
    same = {"of_target": newer.target, "of_trigger": newer.trigger, "of_ref": newer.ref, "newer": newer.id}
    return len(session.execute(_SUPERSEDE, {**same, "why": reason, "at": at}).all())


def claim(session: Session, owner: str, at: datetime, until: datetime) -> Campaign | None:
    """The next campaign, leased to `owner` until `until`; None if none is due.

    A campaign that has begun goes on. Of new ones, repositories take turns: the one whose last campaign ended
    longest ago is next, with its oldest campaign.
    """
    other = aliased(Campaign)
    served = (
        select(func.max(case((other.state.in_(_UNFINISHED), at), else_=other.updated_at)))
        .where(
            other.target == Campaign.target,
            or_(other.state != CampaignState.PLANNING.value, other.owner != ""),
        )
        .scalar_subquery()
    )
    waits = case((Campaign.state == CampaignState.PLANNING.value, 1), else_=0)
    due = (
        select(Campaign)
        .where(_due(at))
        .order_by(waits, served.asc().nulls_first(), Campaign.id)
        .limit(1)
        .with_for_update(skip_locked=True)  # PostgreSQL: two engines never wait for one row
    )
    campaign = session.scalars(due).one_or_none()
    if campaign is not None:
        campaign.owner, campaign.lease_until = owner, until
    return campaign


def any_due(session: Session, at: datetime) -> bool:
    """Whether `claim` would find something; needs no write lock."""
    return session.scalar(select(Campaign.id).where(_due(at)).limit(1)) is not None


def any_unfinished(session: Session) -> bool:
    """Whether any campaign has not ended, due or not."""
    return session.scalar(select(Campaign.id).where(Campaign.state.in_(_UNFINISHED)).limit(1)) is not None


def is_held(session: Session, campaign_id: int, owner: str) -> bool:
    """Whether `owner` may go on working on the campaign; needs no write lock."""
    alive = select(Campaign.id).where(
        Campaign.id == campaign_id, Campaign.owner == owner, Campaign.state.in_(_UNFINISHED)
    )
    return session.scalar(alive) is not None


def find_held(session: Session, campaign_id: int, owner: str) -> Campaign | None:
    """The campaign, locked, if `owner` still holds it."""
    query = select(Campaign).where(
        Campaign.id == campaign_id, Campaign.owner == owner, Campaign.state.in_(_UNFINISHED)
    )
    return session.scalars(query.with_for_update()).one_or_none()


def lock_held(session: Session, campaign_id: int, owner: str) -> Campaign:
    """The campaign, locked, if `owner` still holds it; raises Abandoned otherwise."""
    campaign = find_held(session, campaign_id, owner)
    if campaign is None:
        raise LeaseLost(campaign_id)
    return campaign


def move(campaign: Campaign, state: CampaignState, at: datetime, reason: str | None = None) -> None:
    """Puts the campaign into `state`, free for whoever claims it next."""
    campaign.state = state.value
    campaign.owner, campaign.lease_until, campaign.attempts = "", None, 0
    campaign.updated_at = at
    if reason is not None:
        campaign.reason = reason


def postpone(campaign: Campaign, until: datetime) -> None:
    """Counts a failed attempt at the present step and leaves the campaign alone until `until`."""
    campaign.attempts += 1
    campaign.owner, campaign.lease_until = "", until


def release_lease(session: Session, campaign_id: int, owner: str) -> None:
    """Gives the lease back, nothing else changed."""
    session.execute(
        update(Campaign)
        .where(Campaign.id == campaign_id, Campaign.owner == owner)
        .values(owner="", lease_until=None)
    )


def release_other_leases(session: Session, owners: Collection[str]) -> int:
    """Frees every lease held by processes other than `owners`; for a process that runs alone.

    Back-offs stay.
    """
    result = session.execute(
        update(Campaign)
        .where(Campaign.owner != "", Campaign.owner.not_in(owners))
        .values(owner="", lease_until=None)
    )
    return _row_count(result)


def add_seconds(campaign: Campaign, step: str, seconds: float, at_least: float = 0.0) -> float:
    """Adds to the clock of a step and returns its sum, raised to `at_least`."""
    total = max(seconds_spent(campaign, step) + seconds, at_least)
    campaign.clock = campaign.clock | {step: total}
    return total


def seconds_spent(campaign: Campaign, step: str) -> float:
    """Seconds the campaign has spent in a step, over all restarts."""
    return float(campaign.clock.get(step, 0.0))


def attempted_reductions(campaign: Campaign) -> dict[str, str]:
    """The cases whose reduction it had, over all restarts: case → why there is none, "" where there is."""
    return dict(campaign.plan.get("reductions", {}))


def record_reduction(campaign: Campaign, case_id: str, trouble: str) -> None:
    """Adds one to them."""
    campaign.plan = campaign.plan | {"reductions": attempted_reductions(campaign) | {case_id: trouble}}


def add_cost(campaign: Campaign, step: str, costs: StepCost) -> None:
    """Adds what a shard cost to the work of a step."""
    campaign.costs = campaign.costs | {step: (step_cost(campaign, step) + costs).to_json()}


def step_cost(campaign: Campaign, step: str) -> StepCost:
    """What the shards of a step cost, over all restarts."""
    return StepCost.from_json(campaign.costs.get(step, {}))


def write_plan(session: Session, campaign_id: int, cases: Iterable[str]) -> int:
    """Replaces the plan by these cases, ranked in the order given; returns how many."""
    session.execute(delete(CampaignCase).where(CampaignCase.campaign_id == campaign_id))
    return _append(session, campaign_id, cases, 0)


def extend_plan(session: Session, campaign_id: int, cases: Iterable[str]) -> int:
    """Adds these cases, which must be new, behind those that are planned; returns how many."""
    return _append(session, campaign_id, cases, planned(session, campaign_id))


def _append(session: Session, campaign_id: int, cases: Iterable[str], rank: int) -> int:
    first = rank
    for chunk in chunks(cases):
        rows = [
            {"campaign_id": campaign_id, "rank": rank + index, "case_id": case}
            for index, case in enumerate(chunk)
        ]
        session.execute(insert(CampaignCase), rows)
        rank += len(rows)
    return rank - first


def planned_cases(session: Session, campaign_id: int) -> Iterator[str]:
    """The planned cases, in rank order, streamed."""
    query = (
        select(CampaignCase.case_id)
        .where(CampaignCase.campaign_id == campaign_id)
        .order_by(CampaignCase.rank)
        .execution_options(yield_per=CHUNK)
    )
    yield from session.scalars(query)


def plans(session: Session, campaign_id: int, case_id: str) -> bool:
    """Whether a case is planned."""
    query = select(CampaignCase.rank).where(
        CampaignCase.campaign_id == campaign_id, CampaignCase.case_id == case_id
    )
    return session.scalar(query.limit(1)) is not None


def planned(session: Session, campaign_id: int) -> int:
    """How many cases the plan has."""
    counted = select(func.count()).select_from(CampaignCase).where(CampaignCase.campaign_id == campaign_id)
    return session.scalar(counted) or 0


def set_toolchain(session: Session, campaign: Campaign, side: Side, row: Toolchain) -> None:
    """Names the toolchain of one side; adds its row or updates the interpreter's path."""
    record_toolchain(session, row)
    setattr(campaign, f"{side.value}_toolchain", row.digest)


def record_toolchain(session: Session, row: Toolchain) -> None:
    """Adds the toolchain's row, or updates the interpreter's path."""
    values = {column.key: getattr(row, column.key) for column in Toolchain.__table__.columns}
    insert_missing(session, Toolchain, [values])
    session.get_one(Toolchain, row.digest).python = row.python  # the data folder may have moved


def toolchain(session: Session, digest: str) -> Toolchain:
    """The toolchain of this digest; raises InternalError if it was never recorded."""
    row = session.get(Toolchain, digest)
    if row is None:
        raise InternalError(f"there is no toolchain {digest}")
    return row


def counts_by_state(session: Session) -> dict[str, int]:
    """How many campaigns are in each state, the empty states included."""
    found = session.execute(select(Campaign.state, func.count()).group_by(Campaign.state))
    return {state.value: 0 for state in CampaignState} | dict(found.all())


def after_commit(session: Session, call: Callable[[], None]) -> None:
    """Calls `call` once the session's transaction is committed, never if it rolls back."""

    def committed(_session: Session) -> None:
        call()

    event.listen(session, "after_commit", committed, once=True)


def insert_missing(session: Session, table: type[Base], rows: Iterable[dict[str, Any]]) -> int:
    """Inserts the rows whose keys are new and leaves the others as they are; returns how many were new."""
    key = next(iter(table.__table__.primary_key))
    # Counted by what comes back: psycopg does not say how many rows such an INSERT made. The rows are
    # parameters and no part of the statement, which SQLAlchemy then compiles once and not each time.
    insertion = insert_ignoring_conflicts(session.get_bind().dialect.name, table.__table__).returning(key)
    return sum(len(session.execute(insertion, chunk).all()) for chunk in chunks(rows))


@functools.cache
def insert_ignoring_conflicts(dialect: str, table: Any) -> Any:
    """An INSERT that passes over rows whose keys are there already.

    table   the table, or its class where the new rows are wanted as objects
    """
    insert_ = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert_(table).on_conflict_do_nothing()


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _due(at: datetime) -> Any:
    free = or_(Campaign.lease_until.is_(None), Campaign.lease_until <= at)
    return Campaign.state.in_(_UNFINISHED) & free


def _row_count(result: Any) -> int:
    assert isinstance(result, CursorResult)
    return result.rowcount
