"""Deletes a target's rows and finds the data that only it uses.

The audit stays, since it is append-only, and with it the target's name.
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
    OutcomeRow,
    Reduction,
    Repeat,
    reference_column,
)


@dataclass(frozen=True)
class OwnedData:
    """Data that no other target uses.

    campaigns  ids, which name the folders of their artifacts
    cases      ids of cases that only its campaigns and bugs refer to; catalogs may have them, too
    """

    campaigns: tuple[int, ...]
    cases: frozenset[str]


def find_owned_data(session: Session, target: str) -> OwnedData:
    """Finds the data that only this target uses."""
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
    """Deletes every row of the target, and outcomes and reductions of these cases; rows by table."""
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
    """Selects the target's rows of a table; None if the table has no target."""
    if table is AuditEvent.__table__:
        return None
    if table is CachedResponse.__table__:
        return func.lower(table.c.url).contains(f"/repos/{target.lower()}", autoescape=True)
    reference = reference_column(table)
    if reference is not None:
        return reference == target
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
    """Whether any row outside the audit refers to the target."""
    return any(
        session.scalar(select(true()).select_from(table).where(rows).limit(1))
        for table in Base.metadata.sorted_tables
        if (rows := _target_rows(table, target)) is not None
    )
