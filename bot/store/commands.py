"""Commands in the database: each is stored once, with its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.models import Command, CommandState


def store(session: Session, rows: Iterable[Command]) -> int:
    """Stores new commands; returns how many were new."""
    columns = [column.key for column in Command.__table__.columns]
    given = ({key: value for key in columns if (value := getattr(row, key)) is not None} for row in rows)
    return insert_missing(session, Command, given)


def pending_comments(session: Session) -> list[int]:
    """Comments with pending commands: round-robin by repository, oldest comment first."""
    query = (
        select(Command.comment, Command.target)
        .where(Command.state == CommandState.PENDING.value)
        .group_by(Command.comment, Command.target)
        .order_by(func.min(Command.created_at), Command.comment)
    )
    by_target: dict[str, list[int]] = {}
    for row in session.execute(query):
        by_target.setdefault(row.target, []).append(row.comment)
    turns = zip_longest(*by_target.values())
    return [comment for turn in turns for comment in turn if comment is not None]


def of_comment(session: Session, comment: int) -> Sequence[Command]:
    """The pending commands of one comment in order, locked until the transaction ends."""
    query = (
        select(Command)
        .where(Command.comment == comment, Command.state == CommandState.PENDING.value)
        .order_by(Command.position)
        .with_for_update(skip_locked=True)
    )
    return session.scalars(query).all()


def refused_before(session: Session, row: Command) -> frozenset[str]:
    """Reasons for which this user was refused in this thread before."""
    query = select(Command.reason).where(
        Command.target == row.target,
        Command.number == row.number,
        Command.author == row.author,
        Command.state == CommandState.REFUSED.value,
        Command.comment != row.comment,
    )
    return frozenset(session.scalars(query))


def done_since(session: Session, row: Command, since: datetime) -> Sequence[Command]:
    """Commands of other comments in the row's thread that ended since then."""
    query = select(Command).where(
        Command.target == row.target,
        Command.number == row.number,
        Command.comment != row.comment,
        Command.done_at >= since,
    )
    return session.scalars(query).all()


def replies(session: Session, target: str, number: int, state: CommandState) -> list[tuple[datetime, str]]:
    """Commands of a thread in one state: time and text."""
    query = select(Command.created_at, Command.text).where(
        Command.target == target, Command.number == number, Command.state == state.value
    )
    return [(row.created_at, row.text) for row in session.execute(query)]


def complete(row: Command, state: CommandState, reason: str, at: datetime) -> None:
    """Records the result of a command."""
    row.state, row.reason, row.done_at = state.value, reason, at
