from __future__ import annotations

import threading
from typing import Any

import pytest

from bot.campaigns.local_run import run_locally
from bot.errors import ProvisionError, UsageError
from bot.store.models import Classification, Side
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World


def existing(config: Any, read: Any) -> fakes.PlainSpec:
    return fakes.PlainSpec("standin==2", provisioner="existing")


def test_a_manual_campaign_runs_the_same_steps_without_a_base(world: World) -> None:
    world.use(resolve=existing)
    config = fakes.PlainConfig(budget=60.0)
    row = run_locally(
        world.database, world.settings, world.services, config, seed=5, on_progress=world.progress.append
    )
    assert (row.state, row.base_toolchain) == ("done", None)
    assert row.trigger.startswith("manual:")
    [summary] = world.reports.published
    assert (row.seed, summary.seed) == (5, 5)
    assert summary.ran(Side.HEAD) == len(fakes.TESTS)
    assert summary.toolchains[Side.HEAD].provisioner == "existing"
    assert len(summary.classification(Classification.INCONCLUSIVE)) == 8
    assert world.progress


def test_running_it_again_is_another_campaign_that_reuses_verdicts(world: World) -> None:
    world.use(resolve=existing)
    config = fakes.PlainConfig()
    first = run_locally(world.database, world.settings, world.services, config)
    executed = world.runner.executed
    assert world.reports.published[-1].cached == {Side.HEAD: 0}
    world.clock.advance(1)
    second = run_locally(world.database, world.settings, world.services, config)
    assert first.id != second.id
    assert world.runner.executed == executed
    assert world.reports.published[-1].cached == {Side.HEAD: len(fakes.TESTS)}


@pytest.mark.parametrize(
    "error", [ProvisionError("no such interpreter"), UsageError("no such device"), KeyError("x")]
)
def test_what_ends_it_is_raised_at_once(world: World, error: Exception) -> None:
    calls: list[int] = []

    def fail(*_: Any) -> Any:
        calls.append(1)
        raise error

    world.use(resolve=existing, provision=fail)
    with pytest.raises(type(error)) as raised:
        run_locally(world.database, world.settings, world.services, fakes.PlainConfig())
    assert raised.value is error
    assert calls == [1]
    assert world.campaign(1).state == "failed"


def test_stopping_it_leaves_the_row_unfinished(world: World) -> None:
    stop = threading.Event()
    world.use(resolve=existing)

    def before(_case: str, shard_stop: threading.Event) -> None:
        stop.set()
        assert shard_stop.wait(timeout=600)

    world.runner.before = before
    row = run_locally(world.database, world.settings, world.services, fakes.PlainConfig(), stop=stop)
    assert (row.state, row.owner) == ("running", "")


@pytest.mark.parametrize("place", [0, 1, len(fakes.TESTS) + 1], ids=["first case", "second case", "repeats"])
def test_a_campaign_that_ends_early_reports_what_ran(world: World, place: int) -> None:
    """Also while failures are repeated; the next campaign runs only what is missing."""
    end_early, begun = threading.Event(), list[str]()

    def end_at(case: str, stop: threading.Event) -> None:
        begun.append(case)
        if len(begun) == place + 1:
            end_early.set()
            assert stop.wait(timeout=600)

    world.use(resolve=existing)
    world.runner.before = end_at
    config = fakes.PlainConfig()
    row = run_locally(world.database, world.settings, world.services, config, end_early=end_early)
    assert row.state == "done"
    [summary] = world.reports.published
    ran = summary.ran(Side.HEAD)
    assert ran == min(place, len(fakes.TESTS))
    assert len(begun) == place + 1
    executed = world.runner.executed
    world.runner.before = None
    world.clock.advance(1)
    run_locally(world.database, world.settings, world.services, config)
    assert world.reports.published[-1].cached == {Side.HEAD: ran}
    assert world.reports.published[-1].ran(Side.HEAD) == len(fakes.TESTS)
    assert world.runner.executed > executed


def test_a_campaign_that_ends_early_while_it_reduces_keeps_the_finding(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_early = threading.Event()

    def reduce(_shard: Any, _on_event: Any) -> None:
        end_early.set()

    world.use(resolve=existing)
    monkeypatch.setattr(world.tools, "reduce", reduce)
    config = fakes.PlainConfig(reduction=fakes.PlainReduction(cases=10))
    row = run_locally(world.database, world.settings, world.services, config, end_early=end_early)
    assert row.state == "done"
    [summary] = world.reports.published
    reasons = [one.reason for one in summary.classification(Classification.INCONCLUSIVE)]
    assert any(reason.endswith("ended early; another campaign continues") for reason in reasons)
