"""Who holds a campaign: leases that expire, are taken over and are freed at the start."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, cast

from bot.campaigns.campaign_queue import CampaignQueue
from bot.store.models import CampaignState
from tests.bot.campaigns.conftest import World


def test_two_engines_never_hold_one_campaign(world: World) -> None:
    other = world.another_engine()
    inside: list[bool] = []
    real = world.services.provision

    def provision(spec: Any, data_dir: Any, progress: Any) -> Any:
        inside.append(other.run_once())
        return real(spec, data_dir, progress)

    world.use(provision=provision)
    world.push()
    world.run()
    assert inside == [False, False]


def test_an_expired_lease_is_taken_over_and_the_late_owner_writes_nothing(world: World) -> None:
    campaign_id = world.push()
    other = world.another_engine()
    real = world.services.provision
    taken: list[bool] = []

    def provision(spec: Any, data_dir: Any, progress: Any) -> Any:
        if not taken:
            world.clock.advance(61)  # this process slept through its lease
            taken.append(other.run_once())
        return real(spec, data_dir, progress)

    world.use(provision=provision)
    world.run()
    assert taken == [True]
    assert world.campaign(campaign_id).state == "done"
    assert len(world.reports.published) == 1


def test_start_frees_the_leases_of_the_dead_at_once_but_no_back_off(world: World) -> None:
    held, waiting = world.push(), world.push(target="octo/other")
    with world.database.transaction() as session:
        until = world.clock.now() + timedelta(seconds=60)
        for campaign_id, owner in ((held, "gone:1:a"), (waiting, "")):
            row = session.get_one(type(world.campaign(held)), campaign_id)
            row.owner, row.lease_until = owner, until
    assert not world.engine.run_once()
    world.engine.start(free_other_leases=True)
    assert world.engine.run_once()
    assert world.campaign(held).state == "provisioning"
    assert world.campaign(waiting).state == "planning"


def test_run_forever_wakes_for_a_new_campaign_and_stops(world: World) -> None:
    stop, done = threading.Event(), threading.Event()
    queue = cast("CampaignQueue", world.engine.queue)
    queue._on_progress = lambda p: done.set() if p.state is CampaignState.REPORTING else None
    thread = threading.Thread(target=world.engine.run_forever, args=(stop,))
    thread.start()
    campaign_id = world.push()
    world.engine.wake()
    assert done.wait(timeout=600)
    stop.set()
    world.engine.wake()
    thread.join(timeout=600)
    assert not thread.is_alive()
    assert world.campaign(campaign_id).state == "done"
