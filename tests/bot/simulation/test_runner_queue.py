"""The simulated queue: against the closed forms of queueing theory, and by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.simulation import capacity, runner_queue, workload
from bot.simulation.workload import DAY_S, Arrival, ServiceTimes
from fuzzing.rng import Rng


def erlang_c(load: float, servers: int) -> float:
    """The probability that an arrival waits in M/M/c; load = arrival rate × service time."""
    waiting = load**servers / math.factorial(servers) * servers / (servers - load)
    return waiting / (sum(load**n / math.factorial(n) for n in range(servers)) + waiting)


@pytest.mark.parametrize(("servers", "utilization"), [(1, 0.5), (2, 0.7), (4, 0.8), (8, 0.8)])
def test_mean_delay_is_that_of_mmc(servers: int, utilization: float) -> None:
    service_s, load = 60.0, servers * utilization
    per_day = load / service_s * DAY_S
    arrivals = workload.poisson(Rng(1), per_day, 200_000 / per_day, ServiceTimes(mean_s=service_s))
    figures = capacity.measure(arrivals, servers)
    expected = erlang_c(load, servers) * service_s / (servers - load)
    assert figures.delay_mean_s == pytest.approx(expected, rel=0.05)
    assert figures.utilization == pytest.approx(utilization, rel=0.03)


def test_mean_delay_is_that_of_mg1() -> None:
    """Pollaczek–Khinchine: the delay grows with the second moment of the measured times."""
    times = ServiceTimes(measured=(10.0, 10.0, 10.0, 170.0))
    rate = 0.7 / times.mean
    arrivals = workload.poisson(Rng(2), rate * DAY_S, 60_000 / (rate * DAY_S), times)
    second_moment = sum(value**2 for value in times.measured) / 4
    expected = rate * second_moment / (2 * (1 - 0.7))
    assert capacity.measure(arrivals, 1).delay_mean_s == pytest.approx(expected, rel=0.1)


def test_urgent_campaigns_go_first_and_then_those_that_came_first() -> None:
    arrivals = [
        Arrival(0.0, 10.0),
        Arrival(1.0, 10.0, urgent=False),
        Arrival(2.0, 10.0),
        Arrival(3.0, 10.0),
    ]
    done = runner_queue.run(arrivals, 1)
    assert [one.started for one in done] == [0.0, 30.0, 10.0, 20.0]


def test_shards_run_side_by_side_and_each_has_the_overhead() -> None:
    (done,) = runner_queue.run([Arrival(5.0, 60.0)], 2, shards=3, overhead_s=1.0)
    assert (done.started, done.ended) == (5.0, 5.0 + 2 * 21.0)


@st.composite
def loads(draw: st.DrawFn) -> list[Arrival]:
    gaps = draw(st.lists(st.integers(0, 50), min_size=1, max_size=30))
    at, arrivals = 0, []
    for gap in gaps:
        at += gap
        arrivals.append(Arrival(float(at), float(draw(st.integers(1, 60))), draw(st.booleans())))
    return arrivals


@given(loads(), st.integers(1, 6), st.integers(1, 4))
def test_no_runner_does_two_things_and_none_is_idle_while_work_waits(
    arrivals: list[Arrival], runners: int, shards: int
) -> None:
    done = runner_queue.run(arrivals, runners, shards=shards)
    assert all(one.delay_s >= 0 and one.ended > one.started for one in done)
    if shards == 1:
        for arrival, one in zip(arrivals, done, strict=True):
            assert one.ended == pytest.approx(one.started + arrival.service_s)
        for moment in {one.started for one in done} | {one.arrived for one in done}:
            busy = sum(one.started <= moment < one.ended for one in done)
            waits = any(one.arrived <= moment < one.started for one in done)
            assert busy <= runners
            assert not waits or busy == runners


@given(loads(), st.integers(1, 5))
def test_an_urgent_free_queue_never_gets_slower_by_a_runner(arrivals: list[Arrival], runners: int) -> None:
    alike = [Arrival(one.at, one.service_s) for one in arrivals]
    fewer, more = (runner_queue.run(alike, count) for count in (runners, runners + 1))
    assert all(b.started <= a.started for a, b in zip(fewer, more, strict=True))


def test_the_fewest_runners_for_a_promise_are_found() -> None:
    arrivals = workload.poisson(Rng(3), 2000, 2, ServiceTimes(mean_s=120.0))
    enough = capacity.needed(lambda runners: capacity.measure(arrivals, runners), 600.0)
    assert enough is not None
    assert enough.turnaround_p95_s <= 600.0
    assert capacity.measure(arrivals, enough.runners - 1).turnaround_p95_s > 600.0
    assert capacity.needed(lambda runners: capacity.measure(arrivals, runners), 60.0) is None


def test_a_trace_keeps_its_times_of_the_day_and_is_multiplied() -> None:
    trace = [9 * 3600.0, 10 * 3600.0, DAY_S + 9.5 * 3600.0]
    arrivals = workload.scaled(Rng(4), trace, 2.5, 10, ServiceTimes(mean_s=1.0))
    assert len(arrivals) == pytest.approx(3 * 2.5 * 5, abs=5)
    assert all(8.7 < one.at % DAY_S / 3600 < 10.3 for one in arrivals)
    assert arrivals == workload.scaled(Rng(4), trace, 2.5, 10, ServiceTimes(mean_s=1.0))
