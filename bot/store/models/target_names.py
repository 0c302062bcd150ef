"""The names of targets, and the columns that refer to them by key: a rename changes one row."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    ForeignKey,
    FromClause,
    Integer,
    event,
    insert,
    select,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Mapped, MappedColumn, Mapper, Session, mapped_column
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import KeyedColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from bot.store.models.base import Base, CleanText


class TargetName(Base):
    """A repository's name, or "all" of a kill switch.

    Not every name is a watched target's: campaigns of `assay run` and audit events have others. A name stays
    when its target is deleted, as the audit does.
    """

    __tablename__ = "target_names"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)  # owner/name, follows renames


# Written as SQL rather than with `select`, since SQLAlchemy repeats only expressions of one line for the
# values of an IN, and leaves out table names after INSERT, where both tables may have an id.
class _KeyOf(FunctionElement[int]):
    """The key of a name; 0, which no row has, if it is unknown: NULL would make `!=` false, too."""

    inherit_cache = True


class _NameOf(FunctionElement[str]):
    """The name of a key."""

    inherit_cache = True
    type = CleanText()


@compiles(_KeyOf)
def _compile_key_of(element: _KeyOf, compiler: SQLCompiler, **options: Any) -> str:
    name = compiler.process(element.clauses, **options)
    return f"coalesce((SELECT id FROM target_names WHERE name = {name}), 0)"  # noqa: S608


@compiles(_NameOf)
def _compile_name_of(element: _NameOf, compiler: SQLCompiler, **options: Any) -> str:
    key = compiler.process(element.clauses, **options | {"include_table": True})
    return f"(SELECT target_names.name FROM target_names WHERE target_names.id = {key})"  # noqa: S608


class TargetReference(TypeDecorator[str]):
    """The key of a row of `target_names` in the database, its name in Python.

    Values are translated in SQL: a name that is compared or stored becomes the key by a subquery, and a
    column that is returned becomes the name. Two columns are compared by their keys. Use `name_of` where SQL
    needs the text, to order by it for example.
    """

    impl = Integer
    cache_ok = True

    def bind_expression(self, bindparam: BindParameter[str]) -> ColumnElement[Any]:
        """The key of the name."""
        return _KeyOf(type_coerce(bindparam, CleanText()))

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """The name of a key."""
        return name_of(column)


def name_of(reference: Any) -> ColumnElement[str]:
    """The name that a column refers to, as text."""
    return _NameOf(reference)


def target_column(column: str = "target_id", key: str = "target", **options: Any) -> MappedColumn[str]:
    """A column that refers to a target by the name that the target has at the time.

    column  its name in the database
    key     the name of the attribute
    """
    return mapped_column(column, TargetReference, ForeignKey(TargetName.id), key=key, **options)


@functools.cache
def reference_column(table: FromClause) -> KeyedColumnElement[str] | None:
    """The column of a table that refers to a target; None if there is none."""
    return next((column for column in table.columns if isinstance(column.type, TargetReference)), None)


def insert_names(connection: Session | Connection, table: FromClause, rows: Iterable[dict[str, Any]]) -> None:
    """Inserts the names that new rows of a table refer to, as far as they are new, too."""
    column = reference_column(table)
    if column is None:
        return
    names = {row[column.key] for row in rows}
    known = connection.execute(select(TargetName.name).where(TargetName.name.in_(names)))
    missing = names.difference(row.name for row in known)
    if missing:
        connection.execute(insert(TargetName), [{"name": name} for name in sorted(missing)])


@event.listens_for(Base, "before_insert", propagate=True)
def _insert_name(mapper: Mapper[Any], connection: Connection, row: Base) -> None:
    column = reference_column(mapper.local_table)
    if column is not None:
        insert_names(connection, mapper.local_table, [{column.key: getattr(row, column.key)}])
