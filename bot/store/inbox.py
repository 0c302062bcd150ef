"""The inbox: deliveries are stored, processed once, and keep their result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, select, tuple_, update
from sqlalchemy.orm import Session

from bot.store.campaigns import chunks, insert_ignoring_conflicts
from bot.store.models import Delivery, DeliveryState

# Built once: building a statement for each delivery costs more than running it.
_CLAIM = (
    select(Delivery.id, Delivery.event, Delivery.payload, Delivery.received_at)
    .where(Delivery.id.in_(bindparam("ids", expanding=True)), Delivery.state == DeliveryState.PENDING.value)
    .order_by(Delivery.received_at, Delivery.id)
    .with_for_update(skip_locked=True)  # for PostgreSQL; SQLite has one writer anyway
)
_RECORD_RESULT = (
    update(Delivery)
    .where(Delivery.id == bindparam("delivery"))
    .values(state=bindparam("now"), reason=bindparam("why"))
)


@dataclass(frozen=True)
class ReceivedDelivery:
    """A verified delivery: id, event, raw body, time received (UTC)."""

    id: str
    event: str
    payload: bytes
    received_at: datetime


@dataclass(frozen=True)
class InboxPosition:
    """A delivery's position in the order of arrival, how often it failed, and the bytes of its payload."""

    received_at: datetime
    id: str
    attempts: int = 0
    size: int = 0


@dataclass(frozen=True)
class DeliveryResult:
    """What became of a delivery, and why."""

    id: str
    state: DeliveryState
    reason: str = ""


def store(session: Session, arrivals: Sequence[ReceivedDelivery]) -> list[bool]:
    """Stores deliveries in one statement; for each, returns whether its id was new."""
    rows = [
        {
            "id": arrival.id,
            "event": arrival.event,
            "payload": arrival.payload,
            "received_at": arrival.received_at,
            "state": DeliveryState.PENDING.value,
            "reason": "",
            "attempts": 0,
        }
        for arrival in arrivals
    ]
    table = Delivery.__table__
    insertion = insert_ignoring_conflicts(session.get_bind().dialect.name, table).returning(table.c.id)
    fresh = set(session.scalars(insertion, rows))
    stored = []
    for arrival in arrivals:
        stored.append(arrival.id in fresh)
        fresh.discard(arrival.id)
    return stored


def pending(session: Session, after: InboxPosition | None, limit: int) -> list[InboxPosition]:
    """Positions of the pending deliveries behind `after`, oldest first."""
    order = (Delivery.received_at, Delivery.id)
    size = func.length(Delivery.payload)
    query = select(*order, Delivery.attempts, size).where(Delivery.state == DeliveryState.PENDING.value)
    if after is not None:
        query = query.where(tuple_(*order) > (after.received_at, after.id))
    return [InboxPosition(*row) for row in session.execute(query.order_by(*order).limit(limit))]


def claim(session: Session, ids: Sequence[str]) -> list[ReceivedDelivery]:
    """The deliveries of these ids in order of arrival, locked until the transaction ends.

    Leaves out those that are processed, or locked by another process.
    """
    return [ReceivedDelivery(*row) for row in session.execute(_CLAIM, {"ids": ids})]


def record_results(session: Session, results: Sequence[DeliveryResult]) -> None:
    """Records the results of deliveries, in one round trip."""
    if results:
        rows = [
            {"delivery": result.id, "now": result.state.value, "why": result.reason} for result in results
        ]
        session.connection().execute(_RECORD_RESULT, rows)


def refusal(session: Session, delivery: str) -> str | None:
    """Why a delivery was ignored or failed; None if it waits or was acted on."""
    without_effect = (DeliveryState.IGNORED.value, DeliveryState.FAILED.value)
    return session.scalar(
        select(Delivery.reason).where(Delivery.id == delivery, Delivery.state.in_(without_effect))
    )


def count_attempt(session: Session, delivery: str, reason: str) -> int:
    """Records a temporary failure to process a delivery; returns the number of failures so far."""
    attempts = session.scalar(
        update(Delivery)
        .where(Delivery.id == delivery, Delivery.state == DeliveryState.PENDING.value)
        .values(attempts=Delivery.attempts + 1, reason=reason)
        .returning(Delivery.attempts)
    )
    return attempts or 0


def known(session: Session, ids: Iterable[str]) -> set[str]:
    """The ids that are stored."""
    found: set[str] = set()
    for chunk in chunks(ids):
        found.update(session.scalars(select(Delivery.id).where(Delivery.id.in_(chunk))))
    return found


def backlog(session: Session) -> tuple[int, datetime | None]:
    """Number of pending deliveries, and when the oldest arrived."""
    count, oldest = session.execute(
        select(func.count(), func.min(Delivery.received_at)).where(
            Delivery.state == DeliveryState.PENDING.value
        )
    ).one()
    return count, oldest


def counts(session: Session) -> dict[str, int]:
    """Number of deliveries in each state."""
    rows = session.execute(select(Delivery.state, func.count()).group_by(Delivery.state))
    return dict(rows.all())


def payloads(session: Session, after: str, limit: int) -> list[tuple[str, bytes]]:
    """Ids and payloads of deliveries behind `after`, by id; empty payloads are skipped."""
    query = select(Delivery.id, Delivery.payload).where(Delivery.id > after, Delivery.payload != b"")
    return [(row.id, row.payload) for row in session.execute(query.order_by(Delivery.id).limit(limit))]


def clear_payloads(session: Session, ids: Iterable[str], reason: str) -> None:
    """Clears payloads but keeps the rows, so that a redelivery is still recognized."""
    for chunk in chunks(ids):
        here = update(Delivery).where(Delivery.id.in_(chunk))
        session.execute(here.values(payload=b""))
        pending_ = here.where(Delivery.state == DeliveryState.PENDING.value)
        session.execute(pending_.values(state=DeliveryState.IGNORED.value, reason=reason))
