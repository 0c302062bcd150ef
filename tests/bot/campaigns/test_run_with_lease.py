from __future__ import annotations

import threading
from typing import Any

import pytest

from bot.campaigns.context import Context
from bot.campaigns.registry import get_step
from bot.campaigns.run_with_lease import QUEUE, EventSink, run_with_lease
from bot.errors import RunnerError
from bot.leases import Interrupted, LeaseLost
from bot.store import campaigns
from bot.store.models import CampaignState
from tests.bot.campaigns.conftest import World


class Kept(EventSink):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.threads: set[int] = set()
        self.closed = 0

    def add(self, event: dict[str, Any]) -> None:
        if event.get("bad"):
            raise RunnerError("bad event")
        self.events.append(event)
        self.threads.add(threading.get_ident())

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def context(world: World) -> Context:
    campaign_id = world.push()
    with world.database.transaction() as session:
        present = world.clock.now()
        campaigns.claim(session, "me", present, present)
    return Context(
        database=world.database,
        settings=world.settings,
        services=world.services,
        step=get_step(CampaignState.PLANNING),
        campaign_id=campaign_id,
        owner="me",
        stop=threading.Event(),
        on_progress=world.progress.append,
    )


def test_it_returns_the_result_and_every_event_in_order_on_this_thread(context: Context) -> None:
    kept = Kept()

    def work(on_event: Any, stop: threading.Event) -> str:
        for number in range(3 * QUEUE):
            on_event({"n": number})
        return "done"

    assert run_with_lease(context, work, kept) == "done"
    assert [event["n"] for event in kept.events] == list(range(3 * QUEUE))
    assert kept.threads == {threading.get_ident()}
    assert kept.closed == 1


def test_it_raises_what_the_work_raised_after_keeping_its_events(context: Context) -> None:
    kept = Kept()

    def work(on_event: Any, stop: threading.Event) -> None:
        on_event({"n": 1})
        raise RunnerError("gone")

    with pytest.raises(RunnerError, match="gone"):
        run_with_lease(context, work, kept)
    assert kept.events == [{"n": 1}]
    assert kept.closed == 1


def test_a_refused_event_stops_the_work_even_if_it_has_much_to_say(context: Context) -> None:
    stopped: list[bool] = []

    def work(on_event: Any, stop: threading.Event) -> None:
        on_event({"bad": True})
        for number in range(3 * QUEUE):
            on_event({"n": number})
        stopped.append(stop.wait(timeout=600))

    kept = Kept()
    with pytest.raises(RunnerError, match="bad event"):
        run_with_lease(context, work, kept)
    assert stopped == [True]


def test_it_ends_when_the_process_shuts_down(context: Context) -> None:
    kept = Kept()

    def work(on_event: Any, stop: threading.Event) -> None:
        context.stop.set()
        assert stop.wait(timeout=600)
        on_event({"n": "last"})

    with pytest.raises(Interrupted):
        run_with_lease(context, work, kept)
    assert kept.events == [{"n": "last"}]


def test_the_lease_is_renewed_while_the_work_lasts(world: World, context: Context) -> None:
    def work(on_event: Any, stop: threading.Event) -> None:
        world.clock.advance(20)
        on_event({"n": 1})

    run_with_lease(context, work, Kept())
    context.heartbeat()
    lease = world.campaign(context.campaign_id).lease_until
    assert lease is not None
    assert (lease - world.clock.now()).total_seconds() == 60


def test_a_lost_lease_ends_it(world: World, context: Context) -> None:
    def work(on_event: Any, stop: threading.Event) -> None:
        with world.database.transaction() as session:
            campaigns.get(session, context.campaign_id).owner = "another"
        world.clock.advance(1)
        assert stop.wait(timeout=600)

    with pytest.raises(LeaseLost):
        run_with_lease(context, work, Kept())
