"""The audit log: who did what, why, on what evidence. Append-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from bot.store.models import AuditEvent

ASSAY = "assay"  # actor of events that no person requested


def record(
    session: Session,
    target: str,
    action: str,
    subject: str,
    reason: str,
    at: datetime,
    *,
    actor: str = ASSAY,
    evidence: Mapping[str, Any] | None = None,
) -> None:
    """Adds one row in the transaction of the change it records.

    action   a past-tense verb: "filed", "held", "muted", "approved", "silent"
    subject  "bug:12", "campaign:4", "pull:7", "effect:KEY", "command:COMMENT", "target"
    reason   one sentence for people
    """
    event = AuditEvent(
        at=at,
        target=target,
        actor=actor,
        action=action,
        subject=subject,
        reason=reason,
        evidence=dict(evidence or {}),
    )
    session.add(event)
    session.flush()


def of(session: Session, target: str, subject: str, limit: int = 100) -> Sequence[AuditEvent]:
    """The newest `limit` events of one subject, oldest first."""
    query = select(AuditEvent).where(AuditEvent.target == target, AuditEvent.subject == subject)
    return session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)).all()[::-1]


def last(session: Session, target: str, subject: str, action: str) -> AuditEvent | None:
    """The newest event with this action and subject."""
    query = select(AuditEvent).where(
        AuditEvent.target == target, AuditEvent.subject == subject, AuditEvent.action == action
    )
    return session.scalars(query.order_by(AuditEvent.id.desc()).limit(1)).first()


def of_target(session: Session, target: str, limit: int = 100) -> Sequence[AuditEvent]:
    """The newest `limit` events of a target, newest first."""
    query = select(AuditEvent).where(AuditEvent.target == target)
    return session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)).all()
