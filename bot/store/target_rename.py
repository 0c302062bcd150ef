"""Renames: changes a target's name in every table, in one transaction."""

from __future__ import annotations

from sqlalchemy import Column, Table, delete, func, select, update
from sqlalchemy.orm import Session

from bot.errors import InternalError
from bot.store.models import AuditEvent, Base, CachedResponse, KillSwitch, Target

#: The audit action of a rename; its evidence has the old name as "before".
RENAMED = "renamed"
_PARKED = ".was-"


def rename_target(session: Session, old: str, new: str) -> dict[str, int]:
    """Renames the target `old` to `new`; returns the number of changed rows by table.

    A target that has the new name gets a temporary one: it was renamed, too, and an event or the next list of
    repositories contains its name.
    """
    if old == new:
        raise InternalError(f"{old} is to be renamed to itself")
    if old.lower() != new.lower():
        _free_if_taken(session, new)
    return _rename(session, old, new)


def free_name(session: Session, name: str) -> str:
    """Frees a name that another repository has now; returns the old holder's temporary name."""
    target = session.get(Target, name)
    known = target.github_id if target is not None else None
    parked = f"{name}{_PARKED}{known if known is not None else 'unknown'}"
    if known is None:
        parked = _unique_name(session, parked)
    _rename(session, name, parked)
    return parked


def known_names(session: Session, target: str) -> list[str]:
    """The current and earlier names of a target: files may exist under each of them."""
    renamed = select(AuditEvent).where(AuditEvent.target == target, AuditEvent.action == RENAMED)
    before = (
        str(event.evidence.get("before", "")) for event in session.scalars(renamed.order_by(AuditEvent.id))
    )
    row = session.get(Target, target)
    every = (target, *before, row.stable_name if row is not None else "")
    # A target with a temporary name had the other name before, perhaps without an audit event.
    return list(dict.fromkeys(part for name in every for part in (name, name.partition(_PARKED)[0]) if part))


def _free_if_taken(session: Session, name: str) -> None:
    if any(_count(session, table, column, name) for table, column in _target_columns()):
        free_name(session, name)


def _rename(session: Session, old: str, new: str) -> dict[str, int]:
    session.flush()
    changed = {}
    for table, column in _target_columns():
        result = session.execute(
            update(table).where(column == old).values({column.name: new}).returning(column)
        )
        changed[table.name] = len(result.all())
    # Responses of the old address are redirects from now on.
    session.execute(
        delete(CachedResponse)
        .where(func.lower(CachedResponse.url).contains(f"/repos/{old.lower()}", autoescape=True))
        .execution_options(synchronize_session=False)
    )
    session.expire_all()
    return {table: count for table, count in changed.items() if count}


def _target_columns() -> list[tuple[Table, Column[str]]]:
    """Every column that contains a target's name, kill switches included."""
    tables = Base.metadata.sorted_tables
    named = [(table, table.c.target) for table in tables if "target" in table.c]
    return [*named, (_table(Target), _table(Target).c.name), (_table(KillSwitch), _table(KillSwitch).c.name)]


def _table(model: type[Base]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


def _count(session: Session, table: Table, column: Column[str], name: str) -> int:
    return session.scalar(select(func.count()).select_from(table).where(column == name)) or 0


def _unique_name(session: Session, name: str) -> str:
    number, free = 1, name
    while any(_count(session, table, column, free) for table, column in _target_columns()):
        number += 1
        free = f"{name}-{number}"
    return free
