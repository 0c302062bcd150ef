"""Shards in parts: what is passed on where machines are lost, slow or wrong."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bot.errors import RunnerError, RunnerLostError, ToolchainError
from bot.runners.parts import RETRIES, run_parts, split_shard
from bot.runners.protocol import Event, OnEvent
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Phase, Verdict

CASES = tuple(f"{number:064x}" for number in range(100))


def shard(**fields: Any) -> Shard:
    return Shard("corpus", CASES, "tiny", "t0", "python", **fields)


def outcome(case: str, repeat: int = 0) -> Event:
    found = Outcome(case, "tiny", "t0", "CPU", Verdict.PASS, Phase.RUN, "fine")
    return {"event": "outcome", "repeat": repeat, "outcome": found.to_json()}


class Cluster:
    """Machines that run every case at once. `lose(attempt, place)` says whether one is lost there."""

    def __init__(self, lose: Callable[[int, int], bool] = lambda _attempt, _place: False) -> None:
        self.lose, self.attempts = lose, Counter[str]()
        self.ran: Counter[tuple[str, int]] = Counter()
        self.budgets: list[float | None] = []
        self._lock = threading.Lock()

    def run_part(self, part: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        with self._lock:
            attempt = self.attempts[part.cases[-1]]
            self.attempts[part.cases[-1]] += 1
            self.budgets.append(part.budget_s)
        on_event({"event": "start", "cases": len(part.cases)})
        for place, case in enumerate(part.cases):
            if self.lose(attempt, place):
                raise RunnerLostError("unplugged")
            for repeat in range(part.repeats):
                if stop.is_set():
                    return
                with self._lock:
                    self.ran[case, repeat] += 1
                on_event(outcome(case, repeat))
        end = {"event": "end", "outcomes": len(part.cases), "stopped": "", "versions": {"tiny": "1"}}
        on_event({**end, "busy": 1.0, "phases": {"run": 0.5}})


def run(cluster: Cluster, given: Shard, count: int = 4) -> list[Event]:
    events: list[Event] = []
    run_parts(split_shard(given, count), cluster.run_part, events.append, threading.Event())
    return events


def test_parts_have_cases_of_every_rank_and_lose_none() -> None:
    parts = split_shard(shard(), 4)
    assert [part.cases[0] for part in parts] == list(CASES[:4])
    assert sorted(case for part in parts for case in part.cases) == list(CASES)
    assert len(split_shard(shard(), 50)) == 5, "a part is worth a compiler's start"
    assert len(split_shard(Shard("corpus", CASES[:3], "tiny", "t0", "python"), 8)) == 1


def test_one_shard_comes_out() -> None:
    events = run(Cluster(), shard(repeats=2))
    assert events[0] == {"event": "start", "cases": 100}
    assert len([event for event in events if event["event"] == "outcome"]) == 200
    assert [event["event"] for event in events].count("end") == 1
    end = events[-1]
    assert (end["outcomes"], end["busy"], end["phases"], end["versions"]) == (
        100,
        4.0,
        {"run": 2.0},
        {"tiny": "1"},
    )


@pytest.mark.parametrize("place", [0, 7, 24])
def test_lost_machines_lose_and_repeat_nothing(place: int) -> None:
    cluster = Cluster(lambda attempt, at: attempt < RETRIES and at == min(place, 3))
    events = run(cluster, shard(repeats=2))
    keys = [(event["outcome"]["case"], event["repeat"]) for event in events if event["event"] == "outcome"]
    assert sorted(keys) == sorted((case, repeat) for case in CASES for repeat in range(2))
    assert max(cluster.ran.values()) == 1, "what has arrived runs nowhere again"


def test_a_machine_that_is_lost_with_a_case_half_done_repeats_only_that_case() -> None:
    given, lost = shard(repeats=2), threading.Event()
    ran: Counter[tuple[str, int]] = Counter()

    def run_part(part: Shard, on_event: OnEvent, _stop: threading.Event) -> None:
        on_event({"event": "start", "cases": len(part.cases)})
        for case in part.cases:
            for repeat in range(part.repeats):
                ran[case, repeat] += 1
                on_event(outcome(case, repeat))
                if case == CASES[5] and not repeat and not lost.is_set():
                    lost.set()
                    raise RunnerLostError("unplugged")
        on_event({"event": "end", "outcomes": 0, "stopped": ""})

    events: list[Event] = []
    run_parts(split_shard(given, 1), run_part, events.append, threading.Event())
    assert [key for key, count in ran.items() if count > 1] == [(CASES[5], 0)]
    keys = [(event["outcome"]["case"], event["repeat"]) for event in events if event["event"] == "outcome"]
    assert len(keys) == len(set(keys)) == 200


def test_the_fourth_lost_machine_is_an_infrastructure_failure() -> None:
    cluster = Cluster(lambda _attempt, place: place == 0)
    with pytest.raises(RunnerError, match="4 runners were lost one after the other: unplugged"):
        run(cluster, shard())
    assert max(cluster.attempts.values()) == RETRIES + 1


def test_a_machine_that_is_lost_after_its_last_case_is_not_replaced() -> None:
    def run_part(part: Shard, on_event: OnEvent, _stop: threading.Event) -> None:
        on_event({"event": "start", "cases": len(part.cases)})
        for case in part.cases:
            on_event(outcome(case))
        raise RunnerLostError("unplugged")

    events: list[Event] = []
    run_parts(split_shard(shard(), 1), run_part, events.append, threading.Event())
    assert (len(events), events[-1]["event"], events[-1]["stopped"]) == (102, "end", "")


def test_the_rest_of_the_budget_is_what_the_next_machine_gets() -> None:
    cluster = Cluster(lambda attempt, place: attempt == 0 and place == 3)
    run(cluster, shard(budget_s=100.0), 1)
    first, second = cluster.budgets
    assert first is not None
    assert second is not None
    assert 99.0 < second < first <= 100.0


def test_a_toolchain_that_does_not_start_is_not_tried_elsewhere() -> None:
    attempts = []

    def run_part(part: Shard, on_event: OnEvent, _stop: threading.Event) -> None:
        attempts.append(part)
        on_event({"event": "error", "kind": "toolchain", "message": "cannot import tiny"})

    with pytest.raises(ToolchainError, match="cannot import tiny"):
        run_parts(split_shard(shard(), 1), run_part, lambda _event: None, threading.Event())
    assert len(attempts) == 1


def test_a_runner_that_says_nothing_broke_its_contract() -> None:
    with pytest.raises(RunnerError, match="returned before its part"):
        run_parts(split_shard(shard(), 1), lambda *_: None, lambda _event: None, threading.Event())


def test_a_stop_ends_all_parts_soon() -> None:
    stop, running = threading.Event(), threading.Barrier(4)

    def run_part(_part: Shard, _on_event: OnEvent, stop_part: threading.Event) -> None:
        if running.wait() == 0:
            stop.set()
        assert stop_part.wait(60)

    events: list[Event] = []
    run_parts(split_shard(shard(), 4), run_part, events.append, stop)
    assert [event["event"] for event in events] == ["start"]


def test_slow_readers_slow_the_machines_down() -> None:
    """At most so many events wait in memory as the queue holds."""
    cluster, seen = Cluster(), []

    def take(event: Event) -> None:
        seen.append(event)
        assert sum(cluster.ran.values()) <= len(seen) + 256 + 4

    run_parts(split_shard(shard(repeats=20), 4), cluster.run_part, take, threading.Event())
    assert len(seen) == 2002
