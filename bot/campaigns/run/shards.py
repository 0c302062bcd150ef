"""Shards: cases for the runner; their outcomes are checked, written in batches, and charged to a budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.campaigns.context import Context
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.campaigns.services import Config
from bot.errors import RunnerError
from bot.leases import LEASE, RENEW_S
from bot.runners.fair_slots import Claimant, running_for
from bot.store import campaigns, outcomes
from bot.store.campaigns import Session
from bot.store.models import Campaign, Side
from bot.store.outcomes import CacheKey
from bot.store.step_cost import StepCost
from fuzzing.outcomes import Outcome, Verdict

#: Outcomes of one transaction, and the seconds after which fewer are written too: what a kill may lose.
BATCH = 50
BATCH_S = 1.0
#: Cases of one shard. The start of a shard costs a compiler's import (0.1 to 3 s), so few large ones; the
#: bound keeps a shard's list of ids below 300 kB.
SHARD_CASES = 4000

#: One run: its number among the repeats of its case, and what came out.
Run = tuple[int, Outcome]
Write = Callable[[Session, Sequence[Run]], object]


@dataclass(frozen=True)
class Environment:
    """One side of a campaign, ready to run cases."""

    side: Side
    key: CacheKey
    python: str


@dataclass(frozen=True)
class ShardOptions:
    """How and where a shard runs, and the step and budget (seconds) it is charged to.

    unforked      with `fresh`: cases whose first run has an interpreter of its own; all others are forked by
                  interpreters that ran no case
    alone         one worker at a time
    ablate        whether to look for the component at fault in failures
    limit_factor  multiplies the limits of time and memory; above 1 cases run one at a time, too
    """

    environment: Environment
    step: str
    budget: float
    fresh: bool = False
    unforked: frozenset[str] = frozenset()
    alone: bool = False
    repeats: int = 1
    ablate: bool = False
    limit_factor: float = 1.0


def write_shard(shard: Any, file: Path) -> str:
    """Writes a shard as the data plane reads it; returns the path. Raises RunnerError: the disk is full."""
    try:
        file.write_text(json.dumps(shard.to_json()), encoding="utf-8")
    except OSError as error:
        raise RunnerError(f"a shard cannot be written: {error.strerror}") from None
    return str(file)


def find_environment(session: Session, campaign: Campaign, config: Config, side: Side) -> Environment | None:
    """The environment of one side; None without a toolchain."""
    digest = campaign.head_toolchain if side is Side.HEAD else campaign.base_toolchain
    if digest is None:
        return None
    key = CacheKey.of(digest, config.to_json())
    return Environment(side, key, campaigns.toolchain(session, digest).python)


def load_environments(context: Context) -> tuple[Config, Environment, Environment | None]:
    """The configuration, head's environment, and base's if there is one."""
    with context.reading() as (session, campaign):
        config = context.config(campaign)
        head = find_environment(session, campaign, config, Side.HEAD)
        if head is None:
            raise RunnerError(f"campaign {campaign.id} has no toolchain; it must be provisioned first")
        return config, head, find_environment(session, campaign, config, Side.BASE)


def remaining_budget(context: Context, shard_options: ShardOptions) -> float:
    """Seconds of the budget left, 0 once the campaign is to end early."""
    if context.end_early.is_set():
        return 0.0
    with context.reading() as (_, campaign):
        return shard_options.budget - campaigns.seconds_spent(campaign, shard_options.step)


def run_pending(
    context: Context,
    config: Config,
    shard_options: ShardOptions,
    head: CacheKey | None = None,
    verdicts: Collection[Verdict] = (),
    *,
    by_verdict: bool = False,
) -> None:
    """Runs planned cases without an outcome there, until the budget is spent.

    With `head`, only those whose outcome at head is one of `verdicts`; as in `outcomes.pending`.
    """
    while remaining_budget(context, shard_options) > 0:
        with context.reading() as (session, campaign):
            cases = outcomes.pending(
                session,
                campaign.id,
                shard_options.environment.key,
                limit=SHARD_CASES,
                head=head,
                verdicts=verdicts,
                by_verdict=by_verdict,
            )
        if not cases:
            return
        run_shard(
            context,
            config,
            shard_options,
            cases,
            lambda session, runs: record_outcomes(context, session, runs),
        )


def run_shard(
    context: Context, config: Config, shard_options: ShardOptions, cases: Sequence[str], write: Write
) -> None:
    """Runs one shard; each batch of outcomes is written and charged in one transaction.

    Raises RunnerError if the runner breaks its contract: results are untrusted data.
    """
    alone = shard_options.alone or shard_options.limit_factor > 1
    shard = context.services.make_shard(
        config,
        corpus=str(context.corpus),
        cases=tuple(cases),
        backend=shard_options.environment.key.backend,
        toolchain=shard_options.environment.key.toolchain,
        python=shard_options.environment.python,
        device=shard_options.environment.key.device,
        profile=config.profile,
        options=dict(config.options),
        workers=1 if alone else context.settings.workers,
        fresh=shard_options.fresh,
        forked=shard_options.fresh,
        unforked=tuple(case for case in cases if case in shard_options.unforked),
        repeats=shard_options.repeats,
        ablate=shard_options.ablate,
        budget_s=remaining_budget(context, shard_options),
        limit_factor=shard_options.limit_factor,
    )
    sink = _OutcomeWriter(context, shard_options, cases, write)
    with context.reading() as (_, campaign):
        claimant = Claimant(campaign.target, urgent=campaign.pull is not None)
    with running_for(claimant):
        run_with_lease(
            context,
            lambda on_event, stop: context.services.runner.run(shard, on_event, stop),
            sink,
            end_early=context.end_early,
        )
    if not context.end_early.is_set():
        sink.check()


def record_outcomes(context: Context, session: Session, runs: Sequence[Run]) -> None:
    """Writes runs as verdicts; for `run_shard`."""
    outcomes.record(session, (outcome for _, outcome in runs), context.services.clock.now())


class _OutcomeWriter(EventSink):
    """Writes a shard's outcomes with the time they took."""

    def __init__(
        self, context: Context, shard_options: ShardOptions, cases: Sequence[str], write: Write
    ) -> None:
        self._context, self._job, self._write = context, shard_options, write
        self._awaited = {(case_id, number) for case_id in cases for number in range(shard_options.repeats)}
        self._total = len(self._awaited)
        self._runs: list[Run] = []
        self._charged = self._written = context.services.clock.monotonic()
        self._end: str | None = None
        self._work: StepCost | None = None  # of the whole shard, told at its end and not yet charged

    def add(self, event: dict[str, Any]) -> None:
        if event.get("event") == "end":
            self._end = str(event.get("stopped", ""))
            self._work = StepCost.of_event(event, self._context.settings.workers)
        elif event.get("event") == "outcome":
            self._runs.append(self._validated(event))

    def tick(self) -> None:
        """Writes a full batch, or whatever there is after a second; silence is charged too, more rarely."""
        waited = self._context.services.clock.monotonic() - self._written
        if len(self._runs) >= BATCH or waited >= (BATCH_S if self._runs else RENEW_S):
            self._flush()

    def close(self) -> None:
        """Writes what is left, and what time has passed."""
        self._flush()

    def check(self) -> None:
        """Raises RunnerError unless the shard ended properly."""
        if self._end is None:
            raise RunnerError("the runner returned before its shard had ended; see the log of its machine")
        if self._awaited and not self._end:
            raise RunnerError(
                f"the shard ended with {len(self._awaited)} of {self._total} runs missing and no reason given"
            )

    def _validated(self, event: dict[str, Any]) -> Run:
        outcome, number = Outcome.from_json(event.get("outcome", {})), event.get("repeat", 0)
        if not self._job.environment.key.fits(outcome):
            raise RunnerError(f"a runner sent an outcome of another toolchain: {outcome.toolchain!r:.100}")
        if type(number) is not int or (outcome.case, number) not in self._awaited:
            raise RunnerError(f"a runner sent an unexpected outcome: {outcome.case!r:.100} #{number!r:.20}")
        self._awaited.remove((outcome.case, number))
        return number, outcome

    def _flush(self) -> None:
        context, shard_options = self._context, self._job
        present = context.services.clock.monotonic()
        with context.database.transaction(durable=False) as session:
            if self._runs:
                self._write(session, self._runs)
            # Outcomes are facts, kept whoever owns the campaign by now; its row may no longer be ours.
            campaign = campaigns.find_held(session, context.campaign_id, context.owner)
            if campaign is not None:
                out_of_time = shard_options.budget if self._end == "budget" else 0.0
                campaigns.add_seconds(
                    campaign, shard_options.step, present - self._charged, at_least=out_of_time
                )
                campaign.lease_until = context.services.clock.now() + LEASE
                if self._work is not None:
                    campaigns.add_cost(campaign, shard_options.step, self._work)
        self._work = None
        self._charged = self._written = present
        self._runs = []
        done = self._total - len(self._awaited)
        note = f"{done} of {self._total} runs at {shard_options.environment.side.value}"
        context.progress(done, self._total, note, state=shard_options.step)


def load_outcomes(context: Context, environment: Environment, cases: list[str]) -> dict[str, Outcome]:
    """The stored outcomes of the cases that have one."""
    with context.reading() as (session, _):
        found = {case: outcomes.get(session, case, environment.key) for case in cases}
    return {case: outcome for case, outcome in found.items() if outcome is not None}
