"""Forgetting a target: what belongs to it alone, and the end of its rows.

The audit stays: which acts there were, by whom, when and why; rows are only ever added to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, except_, func, or_, select, true, union
from sqlalchemy.orm import Session

from bot.store.campaigns import chunks
from bot.store.models import (
    AuditEvent,
    Base,
    Bug,
    CachedResponse,
    Campaign,
    CampaignCase,
    Finding,
    KillSwitch,
    OutcomeRow,
    Reduction,
    Repeat,
    Target,
)


@dataclass(frozen=True)
class OwnedData:
    """What a target has and no other has.

    campaigns  their ids, which name the folders of their artifacts
    cases      ids of cases that none but its campaigns and bugs name; catalogs may hold them all the same
    """

    campaigns: tuple[int, ...]
    cases: frozenset[str]


def find_owned_data(session: Session, target: str) -> OwnedData:
    """What belongs to the target alone."""
    query = select(Campaign.id).where(Campaign.target == target).order_by(Campaign.id)
    return OwnedData(tuple(session.scalars(query)), frozenset(_own_cases(session, target)))


def _own_cases(session: Session, target: str) -> set[str]:
    own = _cases_of(Campaign.target == target, Bug.target == target)
    others = _cases_of(Campaign.target != target, Bug.target != target)
    found = set(session.scalars(except_(own, others)))
    reduced: set[str] = set()
    for chunk in chunks(sorted(found)):
        reduced.update(session.scalars(select(Reduction.reduced).where(Reduction.case_id.in_(chunk))))
    if reduced:
        reduced -= set(session.scalars(others))
    return (found | reduced) - {""}


def _cases_of(campaign: ColumnElement[bool], bug: ColumnElement[bool]) -> Any:
    """The cases that these campaigns and bugs name."""
    of_campaign = [
        select(column).join(Campaign, Campaign.id == table.campaign_id).where(campaign)
        for table, column in (
            (CampaignCase, CampaignCase.case_id),
            (Finding, Finding.case_id),
            (Finding, Finding.reduced),
            (Repeat, Repeat.case_id),
        )
    ]
    every = union(*of_campaign, select(Bug.case_id).where(bug)).subquery()
    return select(every.c[0])  # SQLite takes no parentheses around parts of a compound


def delete_target(session: Session, target: str, cases: Collection[str]) -> dict[str, int]:
    """Deletes every row of the target, and verdicts and reductions of these cases; rows by table."""
    session.flush()
    gone = {}
    for table in reversed(Base.metadata.sorted_tables):
        rows = _target_rows(table, target)
        if rows is not None:
            gone[table.name] = _delete(session, table, rows)
    for model in (OutcomeRow, Reduction):
        table = model.__table__
        assert isinstance(table, Table)
        gone[table.name] = sum(
            _delete(session, table, table.c.case_id.in_(chunk)) for chunk in chunks(sorted(cases))
        )
    session.expire_all()
    return {table: count for table, count in gone.items() if count}


def _target_rows(table: Table, target: str) -> ColumnElement[bool] | None:
    """Which rows of a table are the target's; None where none ever are."""
    if table is AuditEvent.__table__:
        return None
    if table is Target.__table__ or table is KillSwitch.__table__:
        return table.c.name == target
    if table is CachedResponse.__table__:
        return func.lower(table.c.url).contains(f"/repos/{target.lower()}", autoescape=True)
    if "target" in table.c:
        return table.c.target == target
    owners: dict[str, type[Campaign | Bug]] = {"campaigns": Campaign, "bugs": Bug}
    through = [
        column.in_(
            select(owners[key.column.table.name].id).where(owners[key.column.table.name].target == target)
        )
        for column in table.c
        for key in column.foreign_keys
        if key.column.table.name in owners
    ]
    return or_(*through) if through else None


def _delete(session: Session, table: Table, rows: ColumnElement[bool]) -> int:
    key = next(iter(table.primary_key.columns))
    return len(session.execute(delete(table).where(rows).returning(key)).all())


def has_rows(session: Session, target: str) -> bool:
    """Whether any row outside the audit names the target."""
    return any(
        session.scalar(select(true()).select_from(table).where(rows).limit(1))
        for table in Base.metadata.sorted_tables
        if (rows := _target_rows(table, target)) is not None
    )
