"""Renames: a target's rows follow it to its new name, in every table, in one transaction."""

from __future__ import annotations

from sqlalchemy import Column, Table, delete, func, select, update
from sqlalchemy.orm import Session

from bot.errors import InternalError
from bot.store.models import Answer, Base, Brake, Target


def move(session: Session, old: str, new: str) -> dict[str, int]:
    """Gives the target `old` the name `new`; returns how many rows each table changed.

    Whatever has the new name is parked first: it was somebody else's until now, and whoever that is has
    another name by now, which an event or the next list of repositories tells.
    """
    if old == new:
        raise InternalError(f"{old} is to be renamed to itself")
    if old.lower() != new.lower():
        _park(session, new)
    return _rename(session, old, new)


def park(session: Session, name: str) -> str:
    """Frees a name that another repository has now; returns what the old holder is called meanwhile."""
    target = session.get(Target, name)
    known = target.github_id if target is not None else None
    parked = f"{name}.was-{known if known is not None else 'unknown'}"
    if known is None:
        parked = _unused(session, parked)
    _rename(session, name, parked)
    return parked


def _park(session: Session, name: str) -> None:
    if any(_count(session, table, column, name) for table, column in _named()):
        park(session, name)


def _rename(session: Session, old: str, new: str) -> dict[str, int]:
    session.flush()
    changed = {}
    for table, column in _named():
        result = session.execute(
            update(table).where(column == old).values({column.name: new}).returning(column)
        )
        changed[table.name] = len(result.all())
    # Answers of the old address are GitHub's redirects from now on.
    session.execute(
        delete(Answer)
        .where(func.lower(Answer.url).contains(f"/repos/{old.lower()}", autoescape=True))
        .execution_options(synchronize_session=False)
    )
    session.expire_all()
    return {table: count for table, count in changed.items() if count}


def _named() -> list[tuple[Table, Column[str]]]:
    """Every column that names a target: those called `target`, the target's own, and brakes'."""
    tables = Base.metadata.sorted_tables
    named = [(table, table.c.target) for table in tables if "target" in table.c]
    return [*named, (_table(Target), _table(Target).c.name), (_table(Brake), _table(Brake).c.name)]


def _table(model: type[Base]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


def _count(session: Session, table: Table, column: Column[str], name: str) -> int:
    return session.scalar(select(func.count()).select_from(table).where(column == name)) or 0


def _unused(session: Session, name: str) -> str:
    number, free = 1, name
    while any(_count(session, table, column, free) for table, column in _named()):
        number += 1
        free = f"{name}-{number}"
    return free
