"""What is known of one bug, asked of all tables: who saw it, where its case was run, what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bot.store.models import Bug, Campaign, Finding, OutcomeRow, Reduction, Retest, Toolchain
from fuzzing.outcomes import Outcome


@dataclass(frozen=True)
class BugSighting:
    """A campaign that saw a bug: how many of its cases failed so, and what they were beside base."""

    campaign: Campaign
    classification: str
    cases: int


def sightings(session: Session, bug: Bug, limit: int = 50) -> list[BugSighting]:
    """The campaigns that saw the bug, the latest first."""
    query = (
        select(Campaign, Finding.classification, func.count())
        .join(Finding, Finding.campaign_id == Campaign.id)
        .where(Campaign.target == bug.target, Finding.signature == bug.signature)
        .group_by(Campaign.id, Finding.classification)
        .order_by(Campaign.id.desc(), Finding.classification)
        .limit(limit)
    )
    return [
        BugSighting(campaign, classification, count)
        for campaign, classification, count in session.execute(query)
    ]


def runs(session: Session, bug: Bug, case_id: str) -> list[tuple[Toolchain, Outcome]]:
    """What a case of the bug did on each toolchain it was run on, in the order in which they were made.

    Of the bug's own, the reduced one, as it is known to be run; of another however it was run.
    """
    query = (
        select(Toolchain, OutcomeRow.body)
        .join(OutcomeRow, OutcomeRow.toolchain == Toolchain.digest)
        .where(OutcomeRow.case_id == case_id)
        .order_by(Toolchain.created_at, Toolchain.label, OutcomeRow.configuration)
    )
    if case_id == bug.case_id:
        query = query.where(
            OutcomeRow.backend == bug.backend,
            OutcomeRow.device == bug.device,
            OutcomeRow.configuration == bug.configuration,
        )
    return [(toolchain, Outcome.from_json(body)) for toolchain, body in session.execute(query)]


def reduction(session: Session, bug: Bug) -> Reduction | None:
    """The first reduction that left the bug's case; None if none did."""
    query = (
        select(Reduction)
        .where(Reduction.reduced == bug.case_id, Reduction.reduced != "")
        .order_by(Reduction.recorded_at, Reduction.case_id)
        .limit(1)
    )
    return session.scalars(query).one_or_none()


def retests(session: Session, bug: Bug) -> Sequence[Retest]:
    """The runs of its case that were made to see whether it is still there, in order."""
    return session.scalars(select(Retest).where(Retest.bug_id == bug.id).order_by(Retest.number)).all()


def example_case(session: Session, bug: Bug) -> str:
    """A case of the latest campaign that saw the bug, for those of which none was reduced; "" if none did."""
    query = (
        select(Finding.case_id)
        .join(Campaign, Finding.campaign_id == Campaign.id)
        .where(Campaign.target == bug.target, Finding.signature == bug.signature)
        .order_by(Campaign.id.desc(), Finding.case_id)
        .limit(1)
    )
    return session.scalar(query) or ""


def find_bugs(session: Session, named: str) -> list[Bug]:
    """The bugs of this number, or whose signatures begin so."""
    if named.isdecimal() and (bug := session.get(Bug, int(named))) is not None:
        return [bug]
    return list(session.scalars(select(Bug).where(Bug.signature.startswith(named)).order_by(Bug.id)))


def all_bugs(session: Session, target: str = "", state: str = "") -> list[Bug]:
    """The bugs of one target, or of all, in one state, or in any; the last seen first."""
    query = select(Bug).order_by(Bug.last_seen.desc(), Bug.id.desc())
    if target:
        query = query.where(Bug.target == target)
    if state:
        query = query.where(Bug.state == state)
    return list(session.scalars(query))


def labels(session: Session, digests: Sequence[str]) -> dict[str, str]:
    """What toolchains are called, by digest."""
    query = select(Toolchain.digest, Toolchain.label).where(Toolchain.digest.in_(set(digests)))
    return dict(session.execute(query).all())


def python_of(session: Session, digest: str) -> str:
    """The interpreter of a toolchain, "" for one that is not recorded."""
    row = session.get(Toolchain, digest)
    return "" if row is None else row.python
