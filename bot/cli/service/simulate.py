"""Estimate queueing delay, cost and the number of runners for a number of repositories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from bot.cli.common.options import json_option
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.simulation import capacity, workload
from bot.simulation.capacity import Figures
from bot.simulation.workload import DAY_S, Arrival, ServiceTimes
from bot.store import campaign_times
from bot.terminal import echo
from fuzzing.rng import Rng

#: Fewer measured campaigns than this say too little about the slow ones, which make the queue.
MIN_MEASURED = 20


@click.command()
@click.option("--repositories", default=10, show_default=True, type=click.IntRange(1), help="Repositories.")
@click.option(
    "--pulls",
    default=200.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Pull requests of each repository a day.",
)
@click.option("--runners", type=click.IntRange(1), help="Runners (GPUs). [default: the fewest that suffice]")
@click.option(
    "--days", default=5.0, show_default=True, type=click.FloatRange(0, 366, min_open=True), help="Days."
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Mean time of a campaign, exponentially distributed. [default: the times this service measured]",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Times of arrival, ISO 8601, one a line, in place of a constant rate; multiplied to reach --pulls.",
)
@click.option("--shards", default=1, show_default=True, type=click.IntRange(1), help="Shards of a campaign.")
@click.option(
    "--overhead", default=0.0, show_default=True, type=click.FloatRange(0), help="Seconds each shard adds."
)
@click.option(
    "--price", default=0.0, show_default=True, type=click.FloatRange(0), help="Price of a runner's hour."
)
@click.option(
    "--p95", default=10.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Minutes within which 95 % of the results are due.",
)  # fmt: skip
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random choices."
)
@json_option
def command(
    repositories: int,
    pulls: float,
    runners: int | None,
    days: float,
    minutes: float | None,
    trace: Path | None,
    shards: int,
    overhead: float,
    price: float,
    p95: float,
    seed: int,
    as_json: bool,
) -> Exit:
    """Estimate queueing delay, cost and the number of runners for a number of repositories.

    Simulates each campaign's wait for a runner, with the times of the campaigns that this service ran. The
    same seed gives the same figures.
    """
    rng = Rng(seed)
    times = ServiceTimes(mean_s=minutes * 60) if minutes else _measured_times()
    if trace is None:
        arrivals = workload.poisson(rng, repositories * pulls, days, times)
    else:
        arrivals = _replay(rng, _read_trace(trace), repositories * pulls, days, times)
    measure = cache(
        partial(capacity.measure, arrivals, shards=shards, overhead_s=overhead, price_per_hour=price)
    )
    enough = capacity.needed(measure, p95 * 60)
    result = {
        "campaigns": len(arrivals),
        "mean_service_s": times.mean,
        "measured_campaigns": len(times.measured),
        "given": asdict(measure(runners)) if runners else None,
        "needed": asdict(enough) if enough else None,
        "p95_s": p95 * 60,
        "seed": seed,
    }
    if as_json:
        echo(json.dumps(result))
    else:
        _print(result, measure(runners) if runners else None, enough, p95)
    return Exit.OK


def _measured_times() -> ServiceTimes:
    with open_database() as (_, database), database.reading() as session:
        measured = campaign_times.runner_seconds(session)
    if len(measured) < MIN_MEASURED:
        raise UsageError(
            f"this service has measured {len(measured)} campaigns, and {MIN_MEASURED} are needed; "
            "give the mean time of a campaign with --minutes"
        )
    return ServiceTimes(tuple(measured))


def _read_trace(path: Path) -> list[float]:
    """Seconds from the start of the first day, ascending. Raises UsageError."""
    moments: list[datetime] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            moment = datetime.fromisoformat(line.strip())
        except ValueError:
            raise UsageError(f"line {number} of {path} is no time; write 2026-11-22T09:30:00Z") from None
        moments.append(moment.replace(tzinfo=moment.tzinfo or UTC))
    if not moments:
        raise UsageError(f"{path} is empty; write one time a line")
    start = min(moments).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return sorted((moment - start).total_seconds() for moment in moments)


def _replay(
    rng: Rng, trace: Sequence[float], per_day: float, days: float, times: ServiceTimes
) -> list[Arrival]:
    """The trace, multiplied to so many arrivals a day."""
    traced_days = trace[-1] // DAY_S + 1
    return workload.scaled(rng, trace, per_day * traced_days / len(trace), days, times)


def _print(result: dict[str, Any], given: Figures | None, enough: Figures | None, p95: float) -> None:
    source = f"as {result['measured_campaigns']} measured ones" if result["measured_campaigns"] else "assumed"
    echo(f"{result['campaigns']} campaigns of {result['mean_service_s'] / 60:.1f} minutes ({source})")
    if given is not None:
        echo(_line(given))
    if enough is None:
        echo(f"no number of runners gives 95 % of the results within {p95:g} minutes; use more --shards")
    else:
        echo(f"for 95 % of the results within {p95:g} minutes: {_line(enough)}")


def _line(one: Figures) -> str:
    return (
        f"{one.runners} runners, {one.utilization:.0%} busy: delay {one.delay_mean_s:.0f} s on average and "
        f"{one.delay_p95_s:.0f} s at p95, result after {one.turnaround_p50_s:.0f} s (p50) and "
        f"{one.turnaround_p95_s:.0f} s (p95), {one.cost:.4f} for a pull request"
    )
