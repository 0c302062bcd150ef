"""Findings in the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import delete, func, select, update

from bot.store.campaigns import CHUNK, Session, chunks
from bot.store.models import Classification, Finding

#: What stands in a finding's reason before why its case was not made small.
NOT_REDUCED = "; not reduced: "


def replace(session: Session, campaign_id: int, rows: Iterable[Finding]) -> int:
    """Makes `rows` the findings of the campaign; returns how many there are."""
    session.execute(delete(Finding).where(Finding.campaign_id == campaign_id))
    count = 0
    for chunk in chunks(rows):
        session.add_all(chunk)
        session.flush()
        count += len(chunk)
    return count


def of_campaign(session: Session, campaign_id: int) -> Iterator[Finding]:
    """The campaign's findings in the order of their cases' ids, streamed."""
    query = (
        select(Finding)
        .where(Finding.campaign_id == campaign_id)
        .order_by(Finding.case_id)
        .execution_options(yield_per=CHUNK)
    )
    yield from session.scalars(query)


def copies(session: Session, campaign_id: int) -> list[Finding]:
    """The campaign's findings as new rows, which may be changed and written by `replace`."""
    names = [column.key for column in Finding.__table__.columns]
    return [
        Finding(**{name: getattr(row, name) for name in names}) for row in of_campaign(session, campaign_id)
    ]


def assign_bug(session: Session, campaign_id: int, signature: str, bug_id: int) -> None:
    """Names the bug that the campaign's findings of this signature belong to."""
    session.execute(
        update(Finding)
        .where(Finding.campaign_id == campaign_id, Finding.signature == signature)
        .values(bug_id=bug_id)
    )


def counts(session: Session, campaign_id: int) -> dict[Classification, int]:
    """How many findings of the campaign have each classification; standings that none has are left out."""
    query = (
        select(Finding.classification, func.count())
        .where(Finding.campaign_id == campaign_id)
        .group_by(Finding.classification)
    )
    return {Classification(classification): count for classification, count in session.execute(query)}


def is_regression(session: Session, campaign_id: int, bug_id: int) -> bool:
    """Whether the campaign's base was free of the bug."""
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
    """A case that showed the bug, of the newest campaign that saw it; "" if none is known."""
    query = select(Finding.case_id).where(Finding.bug_id == bug_id)
    return session.scalar(query.order_by(Finding.campaign_id.desc(), Finding.case_id).limit(1)) or ""
