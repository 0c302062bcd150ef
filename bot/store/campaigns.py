"""Campaigns in the database: create, claim, renew, advance.

A lease is (`owner`, `lease_until`). A campaign is due when it has not ended and its lease is empty or
expired; a back-off is a lease without an owner. Every write of a step goes through `lock_held`, which raises
if the process lost the lease or the campaign.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import CursorResult, bindparam, case, delete, event, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session as Session
from sqlalchemy.orm import aliased

from bot.errors import InternalError
from bot.leases import LeaseLost
from bot.store.models import Base, Campaign, CampaignCase, CampaignState, Side, Toolchain, insert_names
from bot.store.step_cost import StepCost

#: Rows of one INSERT; bounds memory, far below SQLite's 32,766 bound variables.
CHUNK = 500
#: The key of `Campaign.plan` with the number of planned cases, where some of them are deleted.
PLANNED = "planned"
#: The trigger of campaigns of pushes.
PUSH = "push"
#: Maximal length of `Campaign.trigger`.
_TRIGGER = 64

T = TypeVar("T")

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)

# Built once: building the statement for each push costs more than running it.
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
    .execution_options(synchronize_session="fetch")  # "auto" cannot compare the statement's parameters
)


def create(session: Session, row: Campaign) -> tuple[Campaign, bool]:
    """The campaign of (target, head, base, trigger), and whether it is new.

    A superseded campaign gives up its trigger if another delivery requests the same: the branch moved away
    and came back.
    """
    values = {
        column.key: value
        for column in Campaign.__table__.columns
        if (value := getattr(row, column.key)) is not None
    }
    made = _insert(session, values)
    if made is not None:
        return made, True
    # A base that was not given is "", the column's default.
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
    """Inserts the campaign and returns its row; None if the key exists."""
    insert_names(session, Campaign.__table__, [values])
    insertion = insert_ignoring_conflicts(session.get_bind().dialect.name, Campaign).returning(Campaign)
    return session.scalars(insertion, [values]).one_or_none()


def _is_same_delivery(row: Campaign, known: Campaign) -> bool:
    """Whether one delivery requested both; False for campaigns of a sweep, which have none."""
    return bool(row.delivery) and row.delivery == known.delivery


def _free_trigger(session: Session, campaign: Campaign) -> None:
    """Renames the trigger of a campaign to free its unique key."""
    own = f":{campaign.id}"
    campaign.trigger = campaign.trigger[: _TRIGGER - len(own)] + own
    session.flush()


def get(session: Session, campaign_id: int) -> Campaign:
    """The campaign of this id; raises InternalError if there is none."""
    campaign = session.get(Campaign, campaign_id)
    if campaign is None:
        raise InternalError(f"there is no campaign {campaign_id}")
    return campaign


#: Branches of a merge queue: like a pull request's, their commits may never be merged.
MERGE_QUEUE_PREFIX = "refs/heads/gh-readonly-queue/"


def on_branch(pull: int | None, ref: str) -> bool:
    """Whether a campaign tested a commit of a permanent branch, not one that may never be merged."""
    return pull is None and not ref.startswith(MERGE_QUEUE_PREFIX)


def find(session: Session, campaign_id: int | None) -> Campaign | None:
    """The campaign of this id, or None."""
    return session.get(Campaign, campaign_id) if campaign_id is not None else None


def newest(session: Session, target: str, commit: str, ref: str = "") -> Campaign | None:
    """The newest campaign of the target's branches with a build of a commit that starts with `commit`.

    ref   only this branch, "" for any
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


def last_config(session: Session, target: str) -> dict[str, Any]:
    """The configuration of the newest campaign of a target that has one; {} if none has."""
    query = select(Campaign.config).where(
        Campaign.target == target, Campaign.config["version"].as_string().is_not(None)
    )
    found: dict[str, Any] | None = session.scalar(query.order_by(Campaign.id.desc()).limit(1))
    return found or {}


def supersede(session: Session, newer: Campaign, at: datetime) -> int:
    """Ends older unfinished campaigns of the same target, trigger and ref; returns how many.

    Their outcomes stay cached: a verdict does not depend on the campaign. A push takes over the base of the
    oldest of them: no campaign else would compare the commits that those were to test.
    """
    reason = f"superseded: {newer.head[:12]} was pushed to {newer.ref or newer.trigger} (campaign {newer.id})"
    same = {"of_target": newer.target, "of_trigger": newer.trigger, "of_ref": newer.ref, "newer": newer.id}
    ended = session.scalars(_SUPERSEDE, {**same, "why": reason, "at": at}).all()
    if ended and newer.trigger == PUSH:
        _take_base(session, newer, session.get_one(Campaign, min(ended)).base)
    return len(ended)


def _take_base(session: Session, campaign: Campaign, base: str) -> None:
    if base in ("", campaign.base):
        return
    key = [
        Campaign.target == campaign.target, Campaign.head == campaign.head, Campaign.base == base,
        Campaign.trigger == campaign.trigger,
    ]  # fmt: skip
    if (same := session.scalar(select(Campaign).where(*key))) is not None:
        if same.state != CampaignState.SUPERSEDED.value:
            return  # that comparison was made before
        _free_trigger(session, same)
        session.flush()
    campaign.base = base
    session.flush()


def find_unfinished_push(session: Session, target: str, ref: str, head: str) -> Campaign | None:
    """The unfinished campaign of a push of this commit to this branch.

    Its base may be another than that of the push (`supersede`).
    """
    query = select(Campaign).where(
        Campaign.target == target,
        Campaign.ref == ref,
        Campaign.head == head,
        Campaign.trigger == PUSH,
        Campaign.state.in_(_UNFINISHED),
    )
    return session.scalar(query.limit(1))


def claim(session: Session, owner: str, at: datetime, until: datetime) -> Campaign | None:
    """Leases the next due campaign to `owner` until `until`; None if none is due.

    Those of pull requests first, as people wait for them; then started ones. New ones round-robin by
    repository: the one whose last campaign ended longest ago, with its oldest campaign.
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
        .order_by(Campaign.pull.is_(None), waits, served.asc().nulls_first(), Campaign.id)
        .limit(1)
        .with_for_update(skip_locked=True)  # PostgreSQL: workers do not wait for each other's rows
    )
    campaign = session.scalars(due).one_or_none()
    if campaign is not None:
        campaign.owner, campaign.lease_until = owner, until
    return campaign


def any_due(session: Session, at: datetime) -> bool:
    """Whether `claim` would return a campaign; takes no write lock."""
    return session.scalar(select(Campaign.id).where(_due(at)).limit(1)) is not None


def any_unfinished(session: Session) -> bool:
    """Whether any campaign has not ended, due or not."""
    return session.scalar(select(Campaign.id).where(Campaign.state.in_(_UNFINISHED)).limit(1)) is not None


def toolchains_in_use(session: Session) -> frozenset[str]:
    """The digests of the toolchains of campaigns that have not ended."""
    rows = select(Campaign.head_toolchain, Campaign.base_toolchain).where(Campaign.state.in_(_UNFINISHED))
    return frozenset(digest for row in session.execute(rows) for digest in row if digest)


def of_toolchain(session: Session, digest: str, limit: int) -> Sequence[Campaign]:
    """The last campaigns whose head or base has this toolchain, newest first."""
    either = or_(Campaign.head_toolchain == digest, Campaign.base_toolchain == digest)
    return session.scalars(select(Campaign).where(either).order_by(Campaign.id.desc()).limit(limit)).all()


def is_held(session: Session, campaign_id: int, owner: str) -> bool:
    """Whether `owner` still holds the lease of the campaign; takes no write lock."""
    alive = select(Campaign.id).where(
        Campaign.id == campaign_id, Campaign.owner == owner, Campaign.state.in_(_UNFINISHED)
    )
    return session.scalar(alive) is not None


def find_held(session: Session, campaign_id: int, owner: str) -> Campaign | None:
    """The locked campaign if `owner` still holds its lease."""
    query = select(Campaign).where(
        Campaign.id == campaign_id, Campaign.owner == owner, Campaign.state.in_(_UNFINISHED)
    )
    return session.scalars(query.with_for_update()).one_or_none()


def lock_held(session: Session, campaign_id: int, owner: str) -> Campaign:
    """The locked campaign; raises Abandoned if `owner` lost its lease."""
    campaign = find_held(session, campaign_id, owner)
    if campaign is None:
        raise LeaseLost(campaign_id)
    return campaign


def move(campaign: Campaign, state: CampaignState, at: datetime, reason: str | None = None) -> None:
    """Sets the campaign's state and releases its lease."""
    campaign.state = state.value
    campaign.owner, campaign.lease_until, campaign.attempts = "", None, 0
    campaign.updated_at = at
    if reason is not None:
        campaign.reason = reason


def postpone(campaign: Campaign, until: datetime) -> None:
    """Counts a failed attempt of the current step; the campaign is not due before `until`."""
    campaign.attempts += 1
    campaign.owner, campaign.lease_until = "", until


def resume_waiting(session: Session, target: str, commit: str) -> int:
    """Makes due the campaigns of a head or base that wait for its toolchain; returns how many."""
    waiting = update(Campaign).where(
        Campaign.target == target,
        Campaign.state == CampaignState.PROVISIONING.value,
        or_(Campaign.head == commit, Campaign.base == commit),
        Campaign.owner == "",
        Campaign.lease_until.is_not(None),
    )
    return _row_count(session.execute(waiting.values(lease_until=None)))


def release_lease(session: Session, campaign_id: int, owner: str) -> None:
    """Releases the lease without other changes."""
    session.execute(
        update(Campaign)
        .where(Campaign.id == campaign_id, Campaign.owner == owner)
        .values(owner="", lease_until=None)
    )


def release_other_leases(session: Session, owners: Collection[str]) -> int:
    """Releases every lease not held by `owners`; for a process that runs alone. Back-offs stay."""
    result = session.execute(
        update(Campaign)
        .where(Campaign.owner != "", Campaign.owner.not_in(owners))
        .values(owner="", lease_until=None)
    )
    return _row_count(result)


def add_seconds(campaign: Campaign, step: str, seconds: float, at_least: float = 0.0) -> float:
    """Adds to the time of a step and returns the sum, at least `at_least`."""
    total = max(seconds_spent(campaign, step) + seconds, at_least)
    campaign.clock = campaign.clock | {step: total}
    return total


def seconds_spent(campaign: Campaign, step: str) -> float:
    """Seconds spent in a step, over all restarts."""
    return float(campaign.clock.get(step, 0.0))


def attempted_reductions(campaign: Campaign) -> dict[str, str]:
    """Cases whose reduction was attempted, over all restarts: case → why it failed, "" if it succeeded."""
    return dict(campaign.plan.get("reductions", {}))


def record_reduction(campaign: Campaign, case_id: str, reason: str) -> None:
    """Records an attempted reduction."""
    campaign.plan = campaign.plan | {"reductions": attempted_reductions(campaign) | {case_id: reason}}


def add_cost(campaign: Campaign, step: str, costs: StepCost) -> None:
    """Adds the cost of a shard to its step."""
    campaign.costs = campaign.costs | {step: (step_cost(campaign, step) + costs).to_json()}


def step_cost(campaign: Campaign, step: str) -> StepCost:
    """Total cost of the shards of a step, over all restarts."""
    return StepCost.from_json(campaign.costs.get(step, {}))


def write_plan(session: Session, campaign_id: int, cases: Iterable[str]) -> int:
    """Replaces the plan by these cases, in rank order; returns how many."""
    session.execute(delete(CampaignCase).where(CampaignCase.campaign_id == campaign_id))
    return _append(session, campaign_id, cases, 0)


def extend_plan(session: Session, campaign_id: int, cases: Iterable[str]) -> int:
    """Appends new cases to the plan; returns how many. They must not be planned yet."""
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
    """The planned cases in rank order, streamed."""
    query = (
        select(CampaignCase.case_id)
        .where(CampaignCase.campaign_id == campaign_id)
        .order_by(CampaignCase.rank)
        .execution_options(yield_per=CHUNK)
    )
    yield from session.scalars(query)


def plans(session: Session, campaign_id: int, case_id: str) -> bool:
    """Whether the case is in the plan."""
    query = select(CampaignCase.rank).where(
        CampaignCase.campaign_id == campaign_id, CampaignCase.case_id == case_id
    )
    return session.scalar(query.limit(1)) is not None


def planned(session: Session, campaign_id: int) -> int:
    """Number of cases in the plan, those included that were deleted after the end."""
    campaign = session.get(Campaign, campaign_id)
    if campaign is not None and PLANNED in campaign.plan:
        return int(campaign.plan[PLANNED])
    counted = select(func.count()).select_from(CampaignCase).where(CampaignCase.campaign_id == campaign_id)
    return session.scalar(counted) or 0


def record_planned(session: Session, campaign: Campaign) -> None:
    """Keeps the number of planned cases, some of which are to be deleted."""
    campaign.plan = campaign.plan | {PLANNED: planned(session, campaign.id)}


def set_toolchain(session: Session, campaign: Campaign, side: Side, row: Toolchain) -> None:
    """Sets the toolchain of one side and records it."""
    record_toolchain(session, row)
    setattr(campaign, f"{side.value}_toolchain", row.digest)


def record_toolchain(session: Session, row: Toolchain) -> None:
    """Inserts the toolchain, or updates the path of its interpreter."""
    values = {column.key: getattr(row, column.key) for column in Toolchain.__table__.columns}
    insert_missing(session, Toolchain, [values])
    session.get_one(Toolchain, row.digest).python = row.python  # the data folder may have moved


def toolchain(session: Session, digest: str) -> Toolchain:
    """The toolchain of this digest; raises InternalError if there is none."""
    row = session.get(Toolchain, digest)
    if row is None:
        raise InternalError(f"there is no toolchain {digest}")
    return row


def after_commit(session: Session, call: Callable[[], None]) -> None:
    """Calls `call` after the session's transaction commits; never if it rolls back."""

    def committed(_session: Session) -> None:
        call()

    event.listen(session, "after_commit", committed, once=True)


def insert_missing(session: Session, table: type[Base], rows: Iterable[dict[str, Any]]) -> int:
    """Inserts the rows whose keys are new; returns how many."""
    key = next(iter(table.__table__.primary_key))
    # psycopg does not report how many rows such an INSERT made, so returned rows are counted. The rows are
    # parameters, so SQLAlchemy compiles the statement once.
    insertion = insert_ignoring_conflicts(session.get_bind().dialect.name, table.__table__).returning(key)
    new = 0
    for chunk in chunks(rows):
        insert_names(session, table.__table__, chunk)
        new += len(session.execute(insertion, chunk).all())
    return new


@functools.cache
def insert_ignoring_conflicts(dialect: str, table: Any) -> Any:
    """An INSERT that skips existing keys.

    table   the table, or its class to get the new rows as objects
    """
    insert_ = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert_(table).on_conflict_do_nothing()


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Splits the items into lists of at most `size`."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _due(at: datetime) -> Any:
    free = or_(Campaign.lease_until.is_(None), Campaign.lease_until <= at)
    return Campaign.state.in_(_UNFINISHED) & free


def _row_count(result: Any) -> int:
    assert isinstance(result, CursorResult)
    return result.rowcount
