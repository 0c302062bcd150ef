"""Plans: sources are collected, their cases ranked, and written down with what the plan was made of.

A campaign's column `plan` holds `sources`, an account of each source as it stood then, and `ranking`, how
the cases were put in order. The cases and the column are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import structlog

from bot.campaigns import collecting
from bot.campaigns.attend import Sink, attend
from bot.campaigns.catalogue import Account, Cases
from bot.campaigns.collecting import Collector, last_line
from bot.campaigns.context import Context
from bot.campaigns.ranking import Change, Order, Question, Ranking, frontends_of, in_order
from bot.campaigns.services import Config
from bot.config import names
from bot.errors import InfrastructureError, ProvisionError, RefusalError, UsageError
from bot.leases import Abandoned, Interrupted
from bot.machine import absent_of
from bot.store import campaigns, history

log = structlog.get_logger(__name__)

#: The clock of a campaign that collecting is charged to.
COLLECTING = "collecting"
#: Seconds of collecting that a kill may leave uncharged.
_CHARGED_S = 5.0
#: Longest ranking, in seconds: a hundred thousand cases take ten.
RANKING_S = 120.0


def collected(context: Context, config: Config, seconds: float) -> tuple[list[Cases], list[Account]]:
    """The cases of a configuration, after collecting for at most so many seconds, and how far each source is.

    Raises ProvisionError where a source needs a library that is not installed, unless it is one of several
    that nobody named; and the trouble of a source if there is no case at all.
    """
    cases = list(context.services.catalogues(context, config))
    cases, left_out = _possible(cases, config)
    collector = Collector(
        context.corpus, context.services.run_tool, context.settings.workers, context.services.clock.monotonic
    )
    parts = collecting.missing(cases)
    if parts and seconds > 0:
        attend(
            context,
            lambda on_event, stop: collector.collect(parts, seconds, on_event, stop),
            _Charge(context),
        )
    return cases, [*collector.accounts(cases), *left_out]


def _possible(cases: Sequence[Cases], config: Config) -> tuple[list[Cases], list[Account]]:
    """The cases that can be had, and an account of default sources that cannot, for want of a library."""
    good, without = [], []
    for one in cases:
        lacking = next((part.source for part in one.parts() if not part.path.exists()), "")
        if absent := absent_of(lacking):
            without.append((lacking, _advice(lacking, absent)))
        else:
            good.append(one)
    if without and (not good or not _by_default(config)):
        raise ProvisionError("; ".join(advice for _, advice in without))
    return good, [Account(source, whole=0, failed=advice) for source, advice in without]


def _advice(source: str, absent: Sequence[str]) -> str:
    are = "is" if len(absent) == 1 else "are"
    return (
        f"{source} needs {' and '.join(absent)}, which {are} not installed beside Assay; "
        f"install with: pip install {' '.join(absent)}"
    )


def _by_default(config: Config) -> bool:
    """Whether the sources are those that a configuration gets which names none."""
    wanted = frontends_of(config.backend, config.frontend, ())
    return bool(wanted) and tuple(config.sources) == names.default_sources(wanted[0])


class _Charge(Sink):
    """Passes notes on as progress, and charges the time to the campaign; a sink for `attend`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._charged = context.services.clock.monotonic()

    def add(self, event: dict[str, Any]) -> None:
        """Shows how far it is."""
        self._context.progress(event["done"], event["total"], str(event["note"]))

    def tick(self) -> None:
        """Charges now and then."""
        if self._context.services.clock.monotonic() - self._charged >= _CHARGED_S:
            self.close()

    def close(self) -> None:
        """Charges what is left."""
        present = self._context.services.clock.monotonic()
        with self._context.database.transaction(durable=False) as session:
            campaign = campaigns.if_held(session, self._context.campaign_id, self._context.owner)
            if campaign is not None:
                campaigns.spend(campaign, COLLECTING, present - self._charged)
        self._charged = present


@contextmanager
def ranked(
    context: Context, config: Config, cases: Sequence[Cases], known: Iterable[str] = ()
) -> Iterator[tuple[Order, Ranking]]:
    """Each case but those `known`, as `fuzzing.prioritize` orders them, and how it did.

    Raises nothing of its own: where the ranking fails, the order is that of the sources. All of it is on the
    disk before anybody opens a transaction, in which others would wait for it.
    """
    with Order() as order, Order() as complete:
        ranking = _rank(context, config, cases, order)
        for case_id in in_order(order.ids(), cases, known):
            complete.put(case_id)
        yield complete, ranking


def _rank(context: Context, config: Config, cases: Sequence[Cases], order: Order) -> Ranking:
    ranking = Ranking("", asked=config.strategy or "")
    try:
        with _question(context, config, cases).arguments() as (words, ranking):
            context.progress(0, 0, f"ranking the cases: {ranking.strategy}")
            _ask(context, words, order)
    except (Abandoned, Interrupted):
        raise
    except Exception as error:
        # Whatever it is, it is no reason to test nothing. Nothing that people say can make a ranking fail.
        told = {"task": "ranking", "strategy": ranking.strategy, "error": str(error)}
        order.clear()
        if isinstance(error, (InfrastructureError, UsageError)):
            log.error("internal_error", **told)  # noqa: TRY400  (the traceback that matters is in its text)
            return ranking.without(last_line(error))
        log.exception("internal_error", **told)
        return ranking.without(type(error).__name__)
    return replace(ranking, touched=tuple(order.touched))


def _ask(context: Context, words: Sequence[str], order: Order) -> None:
    sink = _Limited(context, order)
    run_tool = context.services.run_tool
    attend(context, lambda *ends: run_tool("fuzzing.prioritize", words, *ends), sink)
    if not order.ended:
        raise InfrastructureError("the ranking ended without saying so; see its log")


class _Limited(Sink):
    """An order that must come within RANKING_S."""

    def __init__(self, context: Context, order: Order) -> None:
        self._clock, self._order = context.services.clock, order
        self._end = self._clock.monotonic() + RANKING_S

    def add(self, event: dict[str, Any]) -> None:
        """Keeps what is ranked."""
        self._order.add(event)

    def tick(self) -> None:
        """Raises InfrastructureError when the time is over."""
        if self._clock.monotonic() > self._end:
            raise InfrastructureError(f"the ranking did not end within {RANKING_S:g} s")

    def close(self) -> None:
        """What was kept can be read."""
        self._order.close()


def _question(context: Context, config: Config, cases: Sequence[Cases]) -> Question:
    with context.reading() as (session, campaign):
        past = history.past(session, campaign.target, config.backend, campaign.created_at)
        known = {one.case: one for one in past}
    return Question(
        strategy=config.strategy or "",
        backend=config.backend,
        frontends=frontends_of(config.backend, config.frontend, config.sources),
        seed=campaign.seed,
        cases=cases,
        corpus=context.corpus,
        change=_change(context, campaign.target, campaign.base, campaign.head) if campaign.base else None,
        past=known,
    )


def _change(context: Context, target: str, base: str, head: str) -> Change | None:
    """What the commits differ in; None where that cannot be told, which costs the ranking alone."""
    read = context.services.repositories.change
    try:
        content = attend(context, lambda *_: read(target, base, head))
    except (InfrastructureError, RefusalError, UsageError) as error:
        log.warning("change_not_read", target=target, base=base, head=head, error=str(error))
        return None
    return None if content is None else Change(content)


def told(accounts: Sequence[Account], ranking: Ranking) -> dict[str, Any]:
    """What a campaign's plan was made of, as its row keeps it."""
    return {"sources": [account.to_json() for account in accounts], "ranking": ranking.to_json()}


def accounts_of(plan: Mapping[str, Any]) -> list[Account]:
    """The accounts in a campaign's row; [] for one that was planned before they were kept."""
    return [Account.from_json(one) for one in plan.get("sources", ())]


def ranking_of(plan: Mapping[str, Any]) -> Ranking | None:
    """How the cases were put in order; None for a campaign that was planned before that was kept."""
    return Ranking.from_json(plan["ranking"]) if "ranking" in plan else None


def extend(context: Context, config: Config) -> int:
    """Collects what is missing, in what is left of the time for it, and plans it behind all else.

    Returns how many cases that added: 0 also where nothing is missing, or no time is left.
    """
    with context.reading() as (session, campaign):
        left = collecting.limit(config.budget) - campaigns.spent(campaign, COLLECTING)
        if left <= 0 or not any(account.lacking for account in accounts_of(campaign.plan)):
            return 0
    cases, accounts = collected(context, config, left)
    with context.reading() as (session, campaign):
        known = set(campaigns.planned_cases(session, campaign.id))
    with (
        ranked(context, config, cases, known) as (order, ranking),
        context.transaction() as (session, campaign),
    ):
        added = campaigns.extend_plan(session, campaign.id, order.ids())
        campaign.plan = told(accounts, ranking)
    return added
