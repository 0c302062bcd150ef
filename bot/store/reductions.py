"""Reductions in the database, by case and cache key."""

from __future__ import annotations

from dataclasses import astuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.models import Reduction
from bot.store.outcomes import CacheKey


def get(session: Session, case_id: str, key: CacheKey) -> Reduction | None:
    """The reduction of a case under the key; None if there was no attempt."""
    return session.get(Reduction, (case_id, *astuple(key)))


def find_on_other_toolchain(session: Session, case_id: str, key: CacheKey) -> Reduction | None:
    """The newest success on another toolchain, all else equal; None if there is none.

    Most failures are the same on the next build: its reduced case is worth one run before a new reduction.
    """
    query = (
        select(Reduction)
        .where(
            Reduction.case_id == case_id,
            Reduction.toolchain != key.toolchain,
            Reduction.backend == key.backend,
            Reduction.device == key.device,
            Reduction.configuration == key.configuration,
            Reduction.reduced != "",
        )
        .order_by(Reduction.recorded_at.desc(), Reduction.toolchain)
        .limit(1)
    )
    return session.scalars(query).one_or_none()


def record(session: Session, row: Reduction) -> None:
    """Adds a reduction; the first one of a key stays."""
    values = {column.key: getattr(row, column.key) for column in Reduction.__table__.columns}
    insert_missing(session, Reduction, [values])
