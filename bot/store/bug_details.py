"""Everything stored about one bug: sightings, runs of its case, retests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bot.store.models import Bug, Campaign, Finding, OutcomeRow, Reduction, Retest, Toolchain
from fuzzing.outcomes import Outcome


@dataclass(frozen=True)
class BugSighting:
    """A campaign that saw a bug: how many cases failed with it, and their classifications."""

    campaign: Campaign
    classification: str
    cases: int


def sightings(session: Session, bug: Bug, limit: int = 50) -> list[BugSighting]:
    """The campaigns that saw the bug, newest first."""
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
    """Outcomes of a case of the bug on each toolchain, in the order of the builds.

    The reduced case is listed under the bug's own configuration, any other case under every configuration.
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
    """The first reduction that produced the bug's case; None if there is none."""
    query = (
        select(Reduction)
        .where(Reduction.reduced == bug.case_id, Reduction.reduced != "")
        .order_by(Reduction.recorded_at, Reduction.case_id)
        .limit(1)
    )
    return session.scalars(query).one_or_none()


def retests(session: Session, bug: Bug) -> Sequence[Retest]:
    """The retests of the bug, oldest first."""
    return session.scalars(select(Retest).where(Retest.bug_id == bug.id).order_by(Retest.number)).all()


def example_case(session: Session, bug: Bug) -> str:
    """A case of the newest campaign that saw the bug, if no case was reduced; "" if there is none."""
    query = (
        select(Finding.case_id)
        .join(Campaign, Finding.campaign_id == Campaign.id)
        .where(Campaign.target == bug.target, Finding.signature == bug.signature)
        .order_by(Campaign.id.desc(), Finding.case_id)
        .limit(1)
    )
    return session.scalar(query) or ""


def find_bugs(session: Session, named: str) -> list[Bug]:
    """The bugs with this id or with a signature that starts with `named`."""
    if named.isdecimal() and (bug := session.get(Bug, int(named))) is not None:
        return [bug]
    return list(session.scalars(select(Bug).where(Bug.signature.startswith(named)).order_by(Bug.id)))


def all_bugs(session: Session, target: str = "", state: str = "") -> list[Bug]:
    """Bugs, last seen first; "" selects all targets or all states."""
    query = select(Bug).order_by(Bug.last_seen.desc(), Bug.id.desc())
    if target:
        query = query.where(Bug.target == target)
    if state:
        query = query.where(Bug.state == state)
    return list(session.scalars(query))


def labels(session: Session, digests: Sequence[str]) -> dict[str, str]:
    """Labels of toolchains by digest."""
    query = select(Toolchain.digest, Toolchain.label).where(Toolchain.digest.in_(set(digests)))
    return dict(session.execute(query).all())


def python_of(session: Session, digest: str) -> str:
    """The interpreter of a toolchain; "" if the toolchain is not recorded."""
    row = session.get(Toolchain, digest)
    return "" if row is None else row.python
