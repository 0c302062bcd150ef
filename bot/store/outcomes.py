"""Outcomes and repeats in the database, and the cases a campaign still has to run.

A verdict is cached for all campaigns by case, toolchain, backend, device and configuration; the last four are
a `CacheKey`. The first verdict recorded under a key stays. Memory holds at most one chunk of a campaign's
outcomes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, null, select
from sqlalchemy.orm import aliased

from bot.store.campaigns import CHUNK, Session, chunks, insert_missing
from bot.store.models import Campaign, CampaignCase, OutcomeRow, Repeat, Side
from fuzzing.oracles.tolerance_profiles import format_configuration
from fuzzing.outcomes import Outcome, Phase, Verdict


@dataclass(frozen=True)
class CacheKey:
    """Where and how a case ran: digest of the toolchain, backend, device, configuration.

    configuration  as `Outcome.configuration`: "" for defaults
    """

    toolchain: str
    backend: str
    device: str
    configuration: str = ""

    @classmethod
    def of(cls, toolchain: str, config: Mapping[str, Any]) -> CacheKey:
        """The key of a toolchain under a campaign's configuration, as JSON."""
        named = format_configuration(dict(config.get("options", {})), str(config.get("profile", "default")))
        return cls(toolchain, str(config["backend"]), str(config["device"]), named)

    def fits(self, outcome: Outcome) -> bool:
        """Whether the outcome has this key."""
        return self == CacheKey(outcome.toolchain, outcome.backend, outcome.device, outcome.configuration)


def record(session: Session, outcomes: Iterable[Outcome], at: datetime) -> int:
    """Adds outcomes with new keys; returns how many were new."""
    rows = (
        {
            "case_id": outcome.case,
            "toolchain": outcome.toolchain,
            "backend": outcome.backend,
            "device": outcome.device,
            "configuration": outcome.configuration,
            "verdict": outcome.verdict.value,
            "body": outcome.to_json(),
            "recorded_at": at,
        }
        for outcome in outcomes
    )
    return insert_missing(session, OutcomeRow, rows)


def record_repeats(
    session: Session, campaign_id: int, side: Side, repeats: Iterable[tuple[int, Outcome]]
) -> int:
    """Adds repeats by (case, number); returns how many were new."""
    rows = (
        {
            "campaign_id": campaign_id,
            "side": side.value,
            "case_id": outcome.case,
            "number": number,
            "verdict": outcome.verdict.value,
            "body": outcome.to_json(),
        }
        for number, outcome in repeats
    )
    return insert_missing(session, Repeat, rows)


def pending(
    session: Session,
    campaign_id: int,
    key: CacheKey,
    *,
    limit: int,
    head: CacheKey | None = None,
    verdicts: Collection[Verdict] = (),
    by_verdict: bool = False,
) -> list[str]:
    """At most `limit` planned cases without an outcome under `key`, in rank order.

    With `head`, only those whose outcome under `head` is one of `verdicts`; with `by_verdict`, those of the
    first verdict before those of the next one.
    """
    query = (
        select(CampaignCase.case_id)
        .outerjoin(OutcomeRow, _at(OutcomeRow, key))
        .where(CampaignCase.campaign_id == campaign_id, OutcomeRow.case_id.is_(None))
    )
    if head is not None:
        other = aliased(OutcomeRow)
        places = {verdict.value: place for place, verdict in enumerate(verdicts)}
        query = query.join(other, _at(other, head)).where(other.verdict.in_(places))
        if by_verdict:
            query = query.order_by(case(places, value=other.verdict))
    return list(session.scalars(query.order_by(CampaignCase.rank).limit(limit)))


def cached(session: Session, campaign_id: int, key: CacheKey, before: datetime) -> int:
    """Number of planned cases that had an outcome under `key` before `before`."""
    query = (
        select(func.count())
        .select_from(CampaignCase)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(CampaignCase.campaign_id == campaign_id, OutcomeRow.recorded_at < before)
    )
    return session.scalar(query) or 0


def by_phase(session: Session, campaign_id: int, key: CacheKey) -> dict[Phase, dict[Verdict, int]]:
    """Phase → verdict → number of planned cases that ended there under `key`."""
    phase = OutcomeRow.body["phase"].as_string()
    query = (
        select(phase, OutcomeRow.verdict, func.count())
        .select_from(CampaignCase)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(CampaignCase.campaign_id == campaign_id)
        .group_by(phase, OutcomeRow.verdict)
    )
    found: dict[Phase, dict[Verdict, int]] = {}
    for name, verdict, count in session.execute(query):
        found.setdefault(Phase(name), {})[Verdict(verdict)] = count
    return {
        phase: {verdict: found[phase][verdict] for verdict in Verdict if verdict in found[phase]}
        for phase in Phase
        if phase in found
    }


def ran(session: Session, campaign_id: int, key: CacheKey) -> int:
    """Number of planned cases with an outcome under `key`."""
    return sum(counts(session, campaign_id, key).values())


def counts(session: Session, campaign_id: int, key: CacheKey) -> dict[Verdict, int]:
    """Verdict → number of planned cases under `key`; zeros are left out."""
    query = (
        select(OutcomeRow.verdict, func.count())
        .select_from(CampaignCase)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(CampaignCase.campaign_id == campaign_id)
        .group_by(OutcomeRow.verdict)
        .order_by(OutcomeRow.verdict)
    )
    return {Verdict(verdict): count for verdict, count in session.execute(query)}


def verdicts(session: Session, campaign_id: int, key: CacheKey) -> Iterator[tuple[str, Verdict]]:
    """(case, verdict) of every planned case with an outcome under `key`, in rank order, streamed."""
    query = (
        select(CampaignCase.case_id, OutcomeRow.verdict)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(CampaignCase.campaign_id == campaign_id)
        .order_by(CampaignCase.rank)
        .execution_options(yield_per=CHUNK)
    )
    for case_id, verdict in session.execute(query):
        yield case_id, Verdict(verdict)


def differing_by_eagle(session: Session, campaign_id: int, key: CacheKey) -> set[str]:
    """The planned pairs whose sides differ by EAGLE's bounds, whatever the verdict."""
    query = (
        select(CampaignCase.case_id)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(
            CampaignCase.campaign_id == campaign_id,
            OutcomeRow.body["evidence"]["eagle"].as_string() == Verdict.WRONG_RESULT.value,
        )
    )
    return set(session.scalars(query))


def cases_with_verdict(
    session: Session, campaign_id: int, key: CacheKey, verdicts: Collection[Verdict]
) -> list[str]:
    """The planned cases whose outcome under `key` is one of `verdicts`, in rank order."""
    query = (
        select(CampaignCase.case_id)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .where(
            CampaignCase.campaign_id == campaign_id,
            OutcomeRow.verdict.in_([verdict.value for verdict in verdicts]),
        )
        .order_by(CampaignCase.rank)
    )
    return list(session.scalars(query))


def outcome_pairs(
    session: Session, campaign_id: int, head: CacheKey, base: CacheKey | None
) -> Iterator[tuple[Outcome, Outcome | None]]:
    """(head, base) outcomes of the planned cases to compare, in rank order, streamed.

    Those are cases that fail or are unsupported at head, cases that fail at base and pass at head, and cases
    that pass at both with outputs that the reference does not decide at head. The base outcome is None if
    base was not run.
    """
    query = _pairs_query(campaign_id, head, base).execution_options(yield_per=CHUNK)
    for at_head, at_base in session.execute(query):
        yield Outcome.from_json(at_head), None if at_base is None else Outcome.from_json(at_base)


def missing_repeats(
    session: Session, campaign_id: int, side: Side, cases: Collection[str], repeats: int
) -> dict[str, list[int]]:
    """Case → numbers of its missing repeats; complete cases are left out."""
    have: dict[str, set[int]] = {case_id: set() for case_id in cases}
    for chunk in chunks(cases):
        query = select(Repeat.case_id, Repeat.number).where(
            Repeat.campaign_id == campaign_id, Repeat.side == side.value, Repeat.case_id.in_(chunk)
        )
        for case_id, number in session.execute(query):
            have[case_id].add(number)
    missing = {case_id: [n for n in range(repeats) if n not in seen] for case_id, seen in have.items()}
    return {case_id: numbers for case_id, numbers in missing.items() if numbers}


def repeats_of_other_campaigns(
    session: Session, campaign_id: int, key: CacheKey, missing: Mapping[str, Collection[int]]
) -> list[tuple[int, Outcome]]:
    """Repeats under `key` of other campaigns that fill the missing numbers."""
    most = max((number for numbers in missing.values() for number in numbers), default=-1) + 1
    found = []
    for chunk in chunks(missing):
        for body, number in session.execute(_repeats_of_other_campaigns_query(campaign_id, key, chunk, most)):
            outcome = Outcome.from_json(body)
            if number in missing[outcome.case]:
                found.append((number, outcome))
    return found


def agreement(
    session: Session, campaign_id: int, side: Side, key: CacheKey, case_id: str | None = None
) -> dict[str, tuple[int, int]]:
    """Case → (k, n): k of its n repeats have the verdict and phase cached under `key`.

    With `case_id`, for that case only.
    """
    same = and_(
        Repeat.verdict == OutcomeRow.verdict,
        Repeat.body["phase"].as_string() == OutcomeRow.body["phase"].as_string(),
    )
    query = (
        select(Repeat.case_id, func.sum(case((same, 1), else_=0)), func.count())
        .join(
            OutcomeRow,
            and_(
                OutcomeRow.case_id == Repeat.case_id,
                OutcomeRow.toolchain == key.toolchain,
                OutcomeRow.backend == key.backend,
                OutcomeRow.device == key.device,
                OutcomeRow.configuration == key.configuration,
            ),
        )
        .where(Repeat.campaign_id == campaign_id, Repeat.side == side.value)
        .group_by(Repeat.case_id)
    )
    if case_id is not None:
        query = query.where(Repeat.case_id == case_id)
    return {found: (int(k), int(n)) for found, k, n in session.execute(query)}


def repeats(session: Session, campaign_id: int, side: Side, case_id: str) -> list[Outcome]:
    """The repeats of a case, by number."""
    query = (
        select(Repeat.body)
        .where(Repeat.campaign_id == campaign_id, Repeat.side == side.value, Repeat.case_id == case_id)
        .order_by(Repeat.number)
    )
    return [Outcome.from_json(body) for body in session.scalars(query)]


def noise(session: Session, campaign_id: int, key: CacheKey) -> tuple[int, int]:
    """(k, n): n planned cases pass at head and were repeated there, k of them with another verdict."""
    query = (
        select(func.sum(case((Repeat.verdict != OutcomeRow.verdict, 1), else_=0)), func.count())
        .select_from(CampaignCase)
        .join(OutcomeRow, _at(OutcomeRow, key))
        .join(Repeat, and_(Repeat.campaign_id == campaign_id, Repeat.case_id == CampaignCase.case_id))
        .where(
            CampaignCase.campaign_id == campaign_id,
            OutcomeRow.verdict == Verdict.PASS.value,
            Repeat.side == Side.HEAD.value,
        )
    )
    differ, runs = session.execute(query).one()
    return int(differ or 0), int(runs)


def delete_outcomes(session: Session, campaign_id: int, key: CacheKey, cases: Collection[str]) -> None:
    """Deletes these cases' outcomes under `key` and the campaign's repeats at head, which are unreliable."""
    for chunk in chunks(cases):
        session.execute(
            delete(OutcomeRow).where(
                OutcomeRow.case_id.in_(chunk),
                OutcomeRow.toolchain == key.toolchain,
                OutcomeRow.backend == key.backend,
                OutcomeRow.device == key.device,
                OutcomeRow.configuration == key.configuration,
            )
        )
        session.execute(
            delete(Repeat).where(
                Repeat.campaign_id == campaign_id,
                Repeat.side == Side.HEAD.value,
                Repeat.case_id.in_(chunk),
            )
        )


def with_component(session: Session, campaign_id: int, side: Side, outcome: Outcome) -> Outcome:
    """The outcome with the component and the rewrite that the first localizing repeat blames."""
    for evidence in (again.evidence for again in repeats(session, campaign_id, side, outcome.case)):
        if evidence.ablation_runs or evidence.rewrite:
            found = replace(
                outcome.evidence,
                ablation_runs=evidence.ablation_runs,
                component=evidence.component,
                rewrite=evidence.rewrite,
            )
            return replace(outcome, evidence=found)
    return outcome


def get(session: Session, case_id: str, key: CacheKey) -> Outcome | None:
    """The cached outcome of one case."""
    row = session.get(OutcomeRow, (case_id, *astuple(key)))
    return None if row is None else Outcome.from_json(row.body)


def _at(row: type[OutcomeRow], key: CacheKey) -> ColumnElement[bool]:
    return and_(
        row.case_id == CampaignCase.case_id,
        row.toolchain == key.toolchain,
        row.backend == key.backend,
        row.device == key.device,
        row.configuration == key.configuration,
    )


def _pairs_query(campaign_id: int, head: CacheKey, base: CacheKey | None) -> Select[Any]:
    accusing = [verdict.value for verdict in Verdict if verdict.is_failure]
    at_head = aliased(OutcomeRow)
    bad: ColumnElement[bool] = at_head.verdict.in_([*accusing, Verdict.UNSUPPORTED.value])
    if base is None:
        query = select(at_head.body, null()).join(CampaignCase, _at(at_head, head))
    else:
        at_base = aliased(OutcomeRow)
        fixed = and_(at_head.verdict == Verdict.PASS.value, at_base.verdict.in_(accusing))
        query = (
            select(at_head.body, at_base.body)
            .join(CampaignCase, _at(at_head, head))
            .outerjoin(at_base, _at(at_base, base))
        )
        excused = at_head.body["evidence"]["excused"][0]["kind"].as_string().is_not(None)
        bad = bad | fixed | and_(excused, at_base.verdict == Verdict.PASS.value)
    return query.where(CampaignCase.campaign_id == campaign_id, bad).order_by(CampaignCase.rank)


def _repeats_of_other_campaigns_query(
    campaign_id: int, key: CacheKey, cases: list[str], repeats: int
) -> Select[Any]:
    side_is_key = ((Repeat.side == Side.HEAD.value) & (Campaign.head_toolchain == key.toolchain)) | (
        (Repeat.side == Side.BASE.value) & (Campaign.base_toolchain == key.toolchain)
    )
    return (
        select(Repeat.body, Repeat.number)
        .join(Campaign, Campaign.id == Repeat.campaign_id)
        .where(
            Repeat.campaign_id != campaign_id,
            Repeat.case_id.in_(cases),
            Repeat.number < repeats,
            Repeat.body["toolchain"].as_string() == key.toolchain,
            Repeat.body["backend"].as_string() == key.backend,
            Repeat.body["device"].as_string() == key.device,
            func.coalesce(Repeat.body["configuration"].as_string(), "") == key.configuration,
            side_is_key,
        )
        .order_by(Repeat.campaign_id, Repeat.number)
    )
