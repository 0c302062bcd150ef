"""Plans: collects sources, ranks their cases, and records how the plan was made.

`Campaign.plan` holds `sources`, a SourceReport each, and `ranking`. Cases and column are written in one
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from bot.campaigns.context import Context
from bot.campaigns.plan import collection
from bot.campaigns.plan.case_source import CaseSource, CatalogPart, SourceReport
from bot.campaigns.plan.catalog import part_of_change
from bot.campaigns.plan.collection import Collector, last_line
from bot.campaigns.plan.ranking import (
    CaseOrder,
    Change,
    Ranking,
    RankingInput,
    merge_order,
    resolve_frontends,
)
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.campaigns.services import Config
from bot.config import names
from bot.config.names import missing_packages
from bot.errors import InfrastructureError, ProvisionError, RefusalError, UsageError
from bot.leases import Interrupted, LeaseLost
from bot.store import campaigns, case_history

log = structlog.get_logger(__name__)

#: The clock of a campaign that collecting is charged to.
COLLECTING = "collecting"
#: Seconds of collecting that a kill may leave uncharged.
_CHARGE_EVERY_S = 5.0
#: Longest ranking, in seconds: a hundred thousand cases take ten.
RANKING_TIMEOUT_S = 120.0


def collect_cases(
    context: Context, config: Config, seconds: float, change: Change | None
) -> tuple[list[CaseSource], list[SourceReport]]:
    """The sources of a configuration after collecting for at most `seconds`, and how far each is.

    The operators that the change names come first. With a sample, its cases only, drawn from all alike. Half
    of the budget may be spent until each source has a case.

    Raises ProvisionError if a source needs a missing library, unless it is one of several default sources;
    the failure of a source if there is no case at all.
    """
    cases = list(context.services.catalogs(context.corpus, config.sources))
    cases, left_out = _split_available(cases, config)
    if context.services.sample is not None:
        cases = context.services.sample.of(cases)
    collector = Collector(
        context.corpus,
        context.services.run_tool,
        context.settings.workers,
        context.services.clock.monotonic,
        patience=dict.fromkeys(sources_without_cases(cases), config.budget / 2),
    )
    end = context.services.clock.monotonic() + seconds
    if change is not None and context.services.sample is None:
        with change.file() as path:
            _collect(context, collector, missing_of_change(cases, change, path), end)
    _collect(context, collector, collection.missing(cases), end)
    return cases, [*collector.accounts(cases), *left_out]


def _collect(context: Context, collector: Collector, parts: Sequence[CatalogPart], end: float) -> None:
    """Migrates the parts, until the clock shows `end`."""
    seconds = end - context.services.clock.monotonic()
    if parts and seconds > 0:
        run_with_lease(
            context,
            lambda on_event, stop: collector.collect(parts, seconds, on_event, stop),
            _TimeCharge(context),
        )


def missing_of_change(cases: Iterable[CaseSource], change: Change, file: Path) -> list[CatalogPart]:
    """For each incomplete source of several parts, its tests of the operators that the change names.

    Cases of generated sources are not of one operator.
    """
    firsts = (
        parts[0]
        for one in cases
        if len(parts := one.parts()) > 1 and not all(part.path.exists() for part in parts)
    )
    digest = change.to_json()["digest"]
    found = (part_of_change(part, file, digest) for part in firsts if not names.is_generated(part.source))
    return [part for part in found if not part.path.exists()]


def sources_without_cases(cases: Iterable[CaseSource]) -> set[str]:
    """The sources of which no part is complete and none has a case."""
    parts = [part for one in cases for part in one.parts()]
    return {part.source for part in parts} - {part.source for part in parts if part.has_begun()}


def _split_available(
    cases: Sequence[CaseSource], config: Config
) -> tuple[list[CaseSource], list[SourceReport]]:
    """The available sources, and reports of default sources whose library is missing."""
    good, without = [], []
    for one in cases:
        source = next((part.source for part in one.parts() if not part.path.exists()), "")
        if absent := missing_packages(source):
            without.append((source, _install_advice(source, absent)))
        else:
            good.append(one)
    if without and (not good or not _uses_default_sources(config)):
        raise ProvisionError("; ".join(advice for _, advice in without))
    return good, [SourceReport(source, whole=0, failed=advice) for source, advice in without]


def _install_advice(source: str, absent: Sequence[str]) -> str:
    are = "is" if len(absent) == 1 else "are"
    return (
        f"{source} needs {' and '.join(absent)}, which {are} not installed beside Assay; "
        f"install with: pip install {' '.join(absent)}"
    )


def _uses_default_sources(config: Config) -> bool:
    """Whether the sources are the defaults."""
    wanted = resolve_frontends(config.backend, config.frontend, ())
    return bool(wanted) and tuple(config.sources) == names.default_sources(wanted[0])


class _TimeCharge(EventSink):
    """Reports progress and charges the time to the campaign; a sink for `run_with_lease`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._charged = context.services.clock.monotonic()

    def add(self, event: dict[str, Any]) -> None:
        self._context.progress(event["done"], event["total"], str(event["note"]))

    def tick(self) -> None:
        if self._context.services.clock.monotonic() - self._charged >= _CHARGE_EVERY_S:
            self.close()

    def close(self) -> None:
        present = self._context.services.clock.monotonic()
        with self._context.database.transaction(durable=False) as session:
            campaign = campaigns.find_held(session, self._context.campaign_id, self._context.owner)
            if campaign is not None:
                campaigns.add_seconds(campaign, COLLECTING, present - self._charged)
        self._charged = present


@contextmanager
def rank_cases(
    context: Context,
    config: Config,
    cases: Sequence[CaseSource],
    change: Change | None,
    known: Iterable[str] = (),
) -> Iterator[tuple[CaseOrder, Ranking]]:
    """Each case not in `known`, in the order of `fuzzing.prioritize`, and the ranking.

    If the ranking fails, the order of the sources is used. Everything is on disk before a transaction is
    opened, which would block others.
    """
    with CaseOrder() as order, CaseOrder() as complete:
        ranking = _rank(context, config, cases, change, order)
        for case_id in merge_order(order.ids(), cases, known):
            complete.put(case_id)
        yield complete, ranking


def _rank(
    context: Context, config: Config, cases: Sequence[CaseSource], change: Change | None, order: CaseOrder
) -> Ranking:
    ranking = Ranking("", asked=config.strategy or "")
    try:
        with _ranking_input(context, config, cases, change).arguments() as (words, ranking):
            context.progress(0, 0, f"ranking the cases: {ranking.strategy}")
            _run_ranking(context, words, order)
    except (LeaseLost, Interrupted):
        raise
    except Exception as error:
        # No failure of the ranking keeps the cases from running.
        fields = {"task": "ranking", "strategy": ranking.strategy, "error": str(error)}
        order.clear()
        if isinstance(error, (InfrastructureError, UsageError)):
            log.error("internal_error", **fields)  # noqa: TRY400  (the traceback that matters is in its text)
            return ranking.without(last_line(error))
        log.exception("internal_error", **fields)
        return ranking.without(type(error).__name__)
    return replace(ranking, touched=tuple(order.touched))


def _run_ranking(context: Context, words: Sequence[str], order: CaseOrder) -> None:
    sink = _LimitedSink(context, order)
    run_tool = context.services.run_tool
    run_with_lease(context, lambda *ends: run_tool("fuzzing.prioritize", words, *ends), sink)
    if not order.ended:
        raise InfrastructureError("the ranking ended without an end event; see its log")


class _LimitedSink(EventSink):
    """A CaseOrder that must be complete within RANKING_TIMEOUT_S."""

    def __init__(self, context: Context, order: CaseOrder) -> None:
        self._clock, self._order = context.services.clock, order
        self._end = self._clock.monotonic() + RANKING_TIMEOUT_S

    def add(self, event: dict[str, Any]) -> None:
        self._order.add(event)

    def tick(self) -> None:
        """Raises InfrastructureError when the time is over."""
        if self._clock.monotonic() > self._end:
            raise InfrastructureError(f"the ranking did not end within {RANKING_TIMEOUT_S:g} s")

    def close(self) -> None:
        self._order.close()


def _ranking_input(
    context: Context, config: Config, cases: Sequence[CaseSource], change: Change | None
) -> RankingInput:
    with context.reading() as (session, campaign):
        past = case_history.past(session, campaign.target, config.backend, campaign.created_at)
        known = {one.case: one for one in past}
    return RankingInput(
        strategy=config.strategy or "",
        backend=config.backend,
        frontends=resolve_frontends(config.backend, config.frontend, config.sources),
        seed=campaign.seed,
        cases=cases,
        corpus=context.corpus,
        change=change,
        past=known,
    )


def read_change(context: Context) -> Change | None:
    """What head changes; None without a base, or if it cannot be read: then the order alone is another."""
    with context.reading() as (_, campaign):
        target, base, head = campaign.target, campaign.base, campaign.head
    if not base:
        return None
    read = context.services.repositories.change
    try:
        content = run_with_lease(context, lambda *_: read(target, base, head))
    except (InfrastructureError, RefusalError, UsageError) as error:
        log.warning("change.unreadable", target=target, base=base, head=head, error=str(error))
        return None
    return None if content is None else Change(content)


def plan_to_json(accounts: Sequence[SourceReport], ranking: Ranking) -> dict[str, Any]:
    """How a plan was made, as JSON for the row."""
    return {"sources": [account.to_json() for account in accounts], "ranking": ranking.to_json()}


def read_source_reports(plan: Mapping[str, Any]) -> list[SourceReport]:
    """The source reports of a campaign's row; [] for rows of earlier versions."""
    return [SourceReport.from_json(one) for one in plan.get("sources", ())]


def read_ranking(plan: Mapping[str, Any]) -> Ranking | None:
    """The ranking of a row; None for rows of earlier versions."""
    return Ranking.from_json(plan["ranking"]) if "ranking" in plan else None


def plan_more_cases(context: Context, config: Config) -> int:
    """Collects missing parts in the time left, and plans their cases last.

    Returns the number of cases added: 0 if nothing is missing, no time is left, or a sample was drawn.
    """
    if context.services.sample is not None:
        return 0
    with context.reading() as (session, campaign):
        left = collection.limit(config.budget) - campaigns.seconds_spent(campaign, COLLECTING)
        if left <= 0 or not any(account.missing_parts for account in read_source_reports(campaign.plan)):
            return 0
    change = read_change(context)
    cases, accounts = collect_cases(context, config, left, change)
    with context.reading() as (session, campaign):
        known = set(campaigns.planned_cases(session, campaign.id))
    with (
        rank_cases(context, config, cases, change, known) as (order, ranking),
        context.transaction() as (session, campaign),
    ):
        added = campaigns.extend_plan(session, campaign.id, order.ids())
        campaign.plan = plan_to_json(accounts, ranking)
    return added
