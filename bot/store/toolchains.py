"""Toolchains that were made, for the rows that refer to them."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from bot.store.database import now
from bot.store.models import Toolchain
from bot.toolchains import Ready


def record_toolchain(session: Session, ready: Ready) -> Toolchain:
    """The row of this toolchain, made or brought up to date; safe when several processes record it."""
    row = session.get(Toolchain, ready.digest)
    if row is None:
        row = _row(ready)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:  # another process was first
            row = session.get_one(Toolchain, ready.digest)
    row.python, row.versions, row.requirements = ready.python, dict(ready.versions), list(ready.requirements)
    return row


def find_toolchain(session: Session, digest: str) -> Toolchain | None:
    """The toolchain of this digest, None if none was recorded."""
    return session.get(Toolchain, digest)


def list_toolchains(session: Session) -> list[Toolchain]:
    """All toolchains, newest first."""
    return list(session.scalars(select(Toolchain).order_by(Toolchain.created_at.desc(), Toolchain.digest)))


def _row(ready: Ready) -> Toolchain:
    return Toolchain(
        digest=ready.digest,
        backend=ready.spec.backend,
        provisioner=ready.spec.provisioner,
        label=ready.spec.label,
        python=ready.python,
        versions=dict(ready.versions),
        requirements=list(ready.requirements),
        created_at=now(),
    )
