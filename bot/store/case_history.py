"""Past verdicts and times of a target's cases, for ranking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Float, Select, case, func, literal, select, union

from bot.store.campaigns import CHUNK, Session
from bot.store.models import Campaign, OutcomeRow
from fuzzing.outcomes import Phase, Verdict

_DAY_S = 86_400.0


@dataclass(frozen=True)
class CaseHistory:
    """One case, over all toolchains of a target.

    runs               number of (toolchain, device, configuration) with a verdict
    findings           how many of these verdicts are failures
    last_finding_days  days since the last failure; None if there is none
    seconds            mean time of one run, without the compiler's import
    """

    case: str
    runs: int
    findings: int
    last_finding_days: float | None
    seconds: float


def past(session: Session, target: str, backend: str, before: datetime) -> Iterator[CaseHistory]:
    """The history of the cases of a target's backend before `before`, streamed."""
    for case_id, runs, findings, last, seconds in session.execute(
        _query(target, backend, before), execution_options={"yield_per": CHUNK}
    ):
        days = None if last is None else max(0.0, (before - last).total_seconds() / _DAY_S)
        yield CaseHistory(case_id, int(runs), int(findings), days, float(seconds))


def _query(target: str, backend: str, before: datetime) -> Select[Any]:
    is_failure = OutcomeRow.verdict.in_([verdict.value for verdict in Verdict if verdict.is_failure])
    own = Campaign.target == target
    toolchains = union(
        select(Campaign.head_toolchain).where(own), select(Campaign.base_toolchain).where(own)
    ).subquery()
    phases = (phase for phase in Phase if phase is not Phase.IMPORT)
    spent = sum(
        (func.coalesce(OutcomeRow.body["durations", phase.value].as_float(), 0.0) for phase in phases),
        start=literal(0.0, Float),
    )
    return (
        select(
            OutcomeRow.case_id,
            func.count(),
            func.sum(case((is_failure, 1), else_=0)),
            func.max(case((is_failure, OutcomeRow.recorded_at)), type_=OutcomeRow.recorded_at.type),
            func.avg(spent),
        )
        .where(
            OutcomeRow.backend == backend,
            OutcomeRow.recorded_at < before,
            OutcomeRow.toolchain.in_(select(toolchains.c.head_toolchain)),
        )
        .group_by(OutcomeRow.case_id)
        .order_by(OutcomeRow.case_id)
    )
