"""Findings in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import delete, func, select, update

from bot.store.campaigns import CHUNK, Session, chunks
from bot.store.models import Classification, Finding

#: In a finding's reason, precedes why its case was not reduced.
NOT_REDUCED = "; not reduced: "


def replace(session: Session, campaign_id: int, rows: Iterable[Finding]) -> int:
    """Replaces the campaign's findings; returns how many there are."""
    session.execute(delete(Finding).where(Finding.campaign_id == campaign_id))
    count = 0
    for chunk in chunks(rows):
        session.add_all(chunk)
        session.flush()
        count += len(chunk)
    return count


def of_campaign(session: Session, campaign_id: int) -> Iterator[Finding]:
    """The campaign's findings by case id, streamed."""
    query = (
        select(Finding)
        .where(Finding.campaign_id == campaign_id)
        .order_by(Finding.case_id)
        .execution_options(yield_per=CHUNK)
    )
    yield from session.scalars(query)


def copies(session: Session, campaign_id: int) -> list[Finding]:
    """Copies of the campaign's findings, to be changed and passed to `replace`."""
    names = [column.key for column in Finding.__table__.columns]
    return [
        Finding(**{name: getattr(row, name) for name in names}) for row in of_campaign(session, campaign_id)
    ]


def assign_bug(session: Session, campaign_id: int, signature: str, bug_id: int) -> None:
    """Assigns the campaign's findings of this signature to a bug."""
    session.execute(
        update(Finding)
        .where(Finding.campaign_id == campaign_id, Finding.signature == signature)
        .values(bug_id=bug_id)
    )


def counts(session: Session, campaign_id: int) -> dict[Classification, int]:
    """Number of findings of the campaign by classification; zeros are left out."""
    query = (
        select(Finding.classification, func.count())
        .where(Finding.campaign_id == campaign_id)
        .group_by(Finding.classification)
    )
    return {Classification(classification): count for classification, count in session.execute(query)}


def is_regression(session: Session, campaign_id: int, bug_id: int) -> bool:
    """Whether the bug was absent at the campaign's base."""
    query = select(Finding.case_id).where(Finding.campaign_id == campaign_id, Finding.bug_id == bug_id)
    query = query.where(Finding.classification == Classification.REGRESSION.value)
    return session.scalar(query.limit(1)) is not None


def unreduced(session: Session, bug_id: int) -> str:
    """Why no case of the bug was reduced, from the newest campaign that saw it; "" if unknown."""
    newest = select(func.max(Finding.campaign_id)).where(Finding.bug_id == bug_id).scalar_subquery()
    query = select(Finding.reason).where(Finding.bug_id == bug_id, Finding.campaign_id == newest)
    query = query.where(Finding.reason.contains(NOT_REDUCED, autoescape=True)).order_by(Finding.case_id)
    return (session.scalar(query.limit(1)) or "").partition(NOT_REDUCED)[2]


def case_of(session: Session, bug_id: int) -> str:
    """A case of the bug from the newest campaign that saw it; "" if there is none."""
    query = select(Finding.case_id).where(Finding.bug_id == bug_id)
    return session.scalar(query.order_by(Finding.campaign_id.desc(), Finding.case_id).limit(1)) or ""
