"""Reduces one failing case with `fuzzing.reduce` and records the result.

One transaction each; the program keeps a journal on disk, so a kill costs one candidate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from bot.campaigns.context import Context
from bot.campaigns.run.shards import Environment, write_shard
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.campaigns.services import Config
from bot.errors import InfrastructureError, RunnerError, UsageError
from bot.store import campaigns, outcomes, reductions
from bot.store.models import Reduction
from fuzzing.exhausted_resources import exhausted_resource
from fuzzing.outcomes import Outcome
from fuzzing.triage.traits import Traits

log = structlog.get_logger(__name__)

PROGRAM = "fuzzing.reduce"
#: Why a case was not reduced to the end; its journal is kept.
ENDED_EARLY = "the campaign was ended early; another campaign continues"
#: Digits of case id and toolchain digest in a journal's name.
_NAME = 16


@dataclass(frozen=True)
class ReducedCase:
    """The result of a reduction.

    case      id of the reduced case
    outcome   of a fresh process
    traits    of its program
    others    other failing cases met on the way, smallest first
    """

    case: str
    outcome: Outcome
    traits: Traits
    others: tuple[str, ...]


def read_reduction(row: Reduction) -> ReducedCase | None:
    """The result in a row; None if the case could not be reduced."""
    if not row.reduced:
        return None
    body = row.body
    others = tuple(map(str, body.get("others", ())))
    return ReducedCase(
        row.reduced, Outcome.from_json(body["outcome"]), traits_from_json(body["traits"]), others
    )


def traits_from_json(obj: Mapping[str, Any]) -> Traits:
    """The inverse of `dataclasses.asdict`. Raises RunnerError: malformed data of a program."""
    try:
        lists = {name: tuple(map(str, obj[name])) for name in ("dtypes", "needs", "operators")}
        root = obj.get("root")  # a row of an earlier Assay has none
        return Traits(pattern=str(obj["pattern"]), **lists, root=None if root is None else dict(root))
    except (TypeError, KeyError) as error:
        raise RunnerError(f"{PROGRAM} sent traits that are none: {error!r}") from None


@dataclass(frozen=True)
class ReductionTask:
    """A case to reduce.

    environment          where it fails
    passing_environment  where candidates must pass; None if that does not matter
    seconds              time limit
    title                its name in progress notes
    """

    case: str
    environment: Environment
    passing_environment: Environment | None
    seconds: float
    title: str


def reduce(context: Context, config: Config, task: ReductionTask) -> tuple[Reduction | None, str]:
    """Reduces one case; returns the row written, or None and the reason.

    A case that cannot be reduced has a row with the reason. An infrastructure failure, or one of the reducer,
    has no row, so that the next campaign tries again.
    """
    began = context.services.clock.monotonic()
    row, small, problem = None, None, ""
    try:
        row = _run(context, config, task, _ReductionSink(context, task.title))
        small = read_reduction(row)
    except InfrastructureError as error:
        row = None  # also where it is written, but cannot be read
        if context.end_early.is_set():
            problem = ENDED_EARLY
        else:
            log.warning("reduction.failed", case=task.case, error=str(error))
            problem = _infrastructure_reason(error)
    elapsed = context.services.clock.monotonic() - began
    with context.transaction() as (session, campaign):
        campaigns.add_seconds(campaign, context.step.state.value, elapsed)
        campaigns.record_reduction(campaign, task.case, problem)
        if small is not None:
            outcomes.record(session, [small.outcome], context.services.clock.now())
        if row is not None:
            row.seconds = round(elapsed, 3)
            reductions.record(session, row)
    return row, problem


def _infrastructure_reason(error: Exception) -> str:
    """The reason in one line; without the program's log, which may contain anything."""
    message, what = str(error), exhausted_resource(str(error))
    message = message.splitlines()[0].removesuffix("; its log ends:")
    message += f": {what}" if what and what not in message else ""
    return f"the reducer failed; the next campaign tries again: {message}"


def _run(context: Context, config: Config, task: ReductionTask, sink: _ReductionSink) -> Reduction:
    problem = ""
    try:
        _start(context, config, task, sink)
    except UsageError as error:
        problem = str(error)
    try:
        return _row(context, task.environment, task.case, sink, problem)
    except (KeyError, TypeError, ValueError) as error:
        raise RunnerError(f"{PROGRAM} sent an end event that is none: {error!r}") from None


def _start(context: Context, config: Config, task: ReductionTask, sink: _ReductionSink) -> None:
    journal = journal_path(context.settings.data_dir, task)
    journal.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="assay-reduce-") as scratch:
        folder = Path(scratch)
        fails = write_shard(_shard(context, config, task.environment, task.case), folder / "shard.json")
        arguments = [fails, "--seconds", f"{task.seconds:.3f}", "--journal", str(journal)]
        if task.passing_environment is not None:
            passes = write_shard(
                _shard(context, config, task.passing_environment, task.case), folder / "passes.json"
            )
            arguments += ["--passes", passes]
        run_tool = context.services.run_tool
        work = partial(run_tool, PROGRAM, arguments)
        run_with_lease(context, work, sink, end_early=context.end_early)


def _shard(context: Context, config: Config, environment: Environment, case_id: str) -> Any:
    return context.services.make_shard(
        config,
        corpus=str(context.corpus),
        cases=(case_id,),
        backend=environment.key.backend,
        toolchain=environment.key.toolchain,
        python=environment.python,
        device=environment.key.device,
        profile=config.profile,
        options=dict(config.options),
        workers=context.settings.workers,
        fresh=False,
        repeats=1,
        ablate=False,
        budget_s=None,
    )


def journal_path(data_dir: Path, task: ReductionTask) -> Path:
    """The journal file of a reduction."""
    key, beside = (
        task.environment.key,
        task.passing_environment.key.toolchain[:_NAME] if task.passing_environment else "",
    )
    how = filter(None, [beside, key.backend, key.device, key.configuration.replace(" ", "-")])
    name = f"{task.case[:_NAME]}-{key.toolchain[:_NAME]}-{'-'.join(how)}.jsonl"
    return data_dir / "reductions" / name.replace("/", "_")


def _row(
    context: Context, environment: Environment, case_id: str, sink: _ReductionSink, problem: str
) -> Reduction:
    """The row of the program's end event. Raises RunnerError if that is malformed."""
    end, key = sink.end, environment.key
    row = Reduction(
        case_id=case_id,
        toolchain=key.toolchain,
        backend=key.backend,
        device=key.device,
        configuration=key.configuration,
        reduced="",
        reason=problem,
        runs=0,
        seconds=0.0,
        body={},
        recorded_at=context.services.clock.now(),
    )
    if problem:
        return row
    if end is None:
        raise RunnerError(f"{PROGRAM} returned before its end event; see the log of its machine")
    row.runs, row.body = int(end["runs"]), end | {"others": sink.others}
    outcome = Outcome.from_json(end["outcome"])
    if not end["confirmed"]:
        row.reason = "the smallest one did not fail in a fresh process"
    elif outcome.case != end["id"] or not key.fits(outcome):
        raise RunnerError(f"{PROGRAM} sent an unexpected outcome: {outcome.case!r:.100}")
    else:
        row.reduced = str(end["id"])
    return row


class _ReductionSink(EventSink):
    """Reports progress and keeps the end event."""

    def __init__(self, context: Context, title: str) -> None:
        self._context, self._title = context, title
        self.others: list[str] = []
        self.end: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "step":
            size = event["size"]
            self._context.progress(0, 0, f"{self._title}: size {size[0]:g} after {event['run']} runs")
        elif kind == "other":
            self.others.append(str(event["id"]))
        elif kind == "end":
            self.end = {name: value for name, value in event.items() if name != "event"}
