"""Reduces failing cases with `fuzzing.reduce`, many in one process.

Importing a compiler takes longer than most reductions. Each result is recorded as it comes, and the program
keeps a journal of each case on disk: a kill of either side costs one candidate. If the process dies, the case
that it was at is to blame, and another process reduces the rest. A case on which a process dies that had
reduced others is tried once more, in a process of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from bot.campaigns.context import Context
from bot.campaigns.reduce.case_reduction import PROGRAM
from bot.campaigns.reduce.reduction_recorder import Attempt, ReductionRecorder, infrastructure_reason
from bot.campaigns.run.shards import Environment, write_shard
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import Config
from bot.errors import InfrastructureError, RunnerError, UsageError

log = structlog.get_logger(__name__)

#: Why a case was not reduced to the end; its journal is kept.
ENDED_EARLY = "the campaign was ended early; another campaign continues"
#: Digits of case id and toolchain digest in a journal's name.
_NAME = 16


@dataclass(frozen=True)
class ReductionBatch:
    """Cases to reduce in order with the same settings.

    titles               case → its name in progress notes
    environment          where they fail
    passing_environment  where candidates must pass; None if that does not matter
    seconds              time limit of each case
    left                 the seconds that are left for all
    """

    titles: Mapping[str, str]
    environment: Environment
    passing_environment: Environment | None
    seconds: float
    left: Callable[[], float]


def reduce(context: Context, config: Config, batch: ReductionBatch) -> dict[str, Attempt]:
    """Reduces cases; case → its attempt. Those missing were not begun, as no time was left.

    A case that cannot be reduced has a row with the reason. An infrastructure failure, or one of the reducer,
    has no row, so that the next campaign tries again.
    """
    found: dict[str, Attempt] = {}
    groups = [list(batch.titles)]
    while groups and batch.left() > 0:
        if not (cases := groups.pop()):
            continue
        titles = {case: batch.titles[case] for case in cases}
        recorder = ReductionRecorder(context, batch.environment.key, titles)
        problem = _run(context, config, batch, cases, recorder)
        rest = [case for case in cases if case not in recorder.attempts]
        if problem is not None and rest:
            dead = recorder.current or rest[0]
            rest.remove(dead)
            groups.append(rest)
            if recorder.current and recorder.attempts and problem != ENDED_EARLY:
                groups.append([dead])
            else:
                recorder.record_problem(dead, problem)
        found |= recorder.attempts
    return found


def _run(
    context: Context, config: Config, batch: ReductionBatch, cases: Sequence[str], recorder: ReductionRecorder
) -> str | None:
    """Runs one process for the cases; returns why it died, None if it did not."""
    try:
        with tempfile.TemporaryDirectory(prefix="assay-reduce-") as scratch:
            arguments = _arguments(context, config, batch, cases, Path(scratch))
            work = partial(context.services.run_tool, PROGRAM, arguments)
            run_with_lease(context, work, recorder, end_early=context.end_early)
    except UsageError as error:
        return str(error)
    except InfrastructureError as error:
        if context.end_early.is_set():
            return ENDED_EARLY
        log.warning("reduction.failed", case=recorder.current, error=str(error))
        return infrastructure_reason(error)
    if recorder.current is None:
        return None
    if context.end_early.is_set():
        return ENDED_EARLY
    return infrastructure_reason(RunnerError(f"{PROGRAM} returned before its end event"))


def _arguments(
    context: Context, config: Config, batch: ReductionBatch, cases: Sequence[str], folder: Path
) -> list[str]:
    """The program's arguments; writes the shards that they name."""
    fails = write_shard(_shard(context, config, batch.environment, cases), folder / "shard.json")
    arguments = [fails, "--seconds", f"{batch.seconds:.3f}", "--within", f"{batch.left():.3f}"]
    for case in cases:
        journal = journal_path(context.settings.data_dir, batch, case)
        journal.parent.mkdir(parents=True, exist_ok=True)
        arguments += ["--journal", str(journal)]
    if batch.passing_environment is not None:
        passes = write_shard(
            _shard(context, config, batch.passing_environment, cases), folder / "passes.json"
        )
        arguments += ["--passes", passes]
    return arguments


def _shard(context: Context, config: Config, environment: Environment, cases: Sequence[str]) -> Any:
    return context.services.make_shard(
        config,
        corpus=str(context.corpus),
        cases=tuple(cases),
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


def journal_path(data_dir: Path, batch: ReductionBatch, case: str) -> Path:
    """The journal file of a reduction."""
    key, beside = (
        batch.environment.key,
        batch.passing_environment.key.toolchain[:_NAME] if batch.passing_environment else "",
    )
    how = filter(None, [beside, key.backend, key.device, key.configuration.replace(" ", "-")])
    name = f"{case[:_NAME]}-{key.toolchain[:_NAME]}-{'-'.join(how)}.jsonl"
    return data_dir / "reductions" / name.replace("/", "_")
