from __future__ import annotations

from typing import NoReturn

import pytest
from sqlalchemy import func, select

from bot.campaigns.intents import handle
from bot.store.models import Campaign
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import Intent


def count(world: World) -> int | None:
    with world.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Campaign))


def test_the_same_push_delivered_twice_is_one_campaign(world: World) -> None:
    assert world.push() == world.push(delivery="d-2")
    assert count(world) == 1
    campaign = world.campaign(1)
    assert (campaign.state, campaign.delivery, campaign.ref) == ("planning", "d-1", "refs/heads/main")


def test_a_repeated_push_does_not_supersede_what_came_after_it(world: World) -> None:
    world.push()
    newer = world.push(head="4" * 40)
    world.push()
    assert world.campaign(newer).state == "planning"


def test_the_last_of_two_commits_that_are_pushed_by_turns_is_tested(world: World) -> None:
    one, other = "1" * 40, "4" * 40
    made = [
        world.push(head=head, base=base, delivery=f"d-{number}")
        for number, (head, base) in enumerate([(one, other), (other, one)] * 3)
    ]
    assert made == sorted(set(made))
    assert [world.campaign(campaign).state for campaign in made] == ["superseded"] * 5 + ["planning"]
    last = world.campaign(made[-1])
    assert (last.head, last.trigger) == (other, "push"), "what asked for it is called as ever"


def test_the_seed_is_the_commits_own(world: World) -> None:
    first, second = world.push(), world.push(base="", trigger="manual:1")
    other = world.push(head="5" * 40)
    assert world.campaign(first).seed == world.campaign(second).seed != world.campaign(other).seed


@pytest.mark.parametrize(
    ("newer", "superseded"),
    [
        ({"head": "4" * 40}, True),
        ({"head": "4" * 40, "ref": "refs/heads/topic"}, False),
        ({"head": "4" * 40, "target": "octo/other"}, False),
        ({"head": "4" * 40, "trigger": "pull_request:7"}, False),
    ],
)
def test_only_a_newer_push_to_the_same_ref_supersedes(
    world: World, newer: dict[str, str], superseded: bool
) -> None:
    older = world.push()
    world.push(**newer)
    assert (world.campaign(older).state == "superseded") == superseded


def test_commits_of_a_campaign_that_a_push_supersedes_are_compared_too(world: World) -> None:
    world.push()
    world.push(head="3" * 40, base="2" * 40, delivery="d-2")
    last = world.push(head="4" * 40, base="3" * 40, delivery="d-3")
    assert world.campaign(last).base == "1" * 40, "2 and 3 were not tested"
    assert world.push(head="4" * 40, base="3" * 40, delivery="d-4") == last, "the same push again"
    assert count(world) == 3
    world.run()
    after = world.push(head="5" * 40, base="4" * 40, delivery="d-5")
    assert world.campaign(after).base == "4" * 40


def test_a_branch_that_returns_to_where_it_was_is_compared_with_that(world: World) -> None:
    made = [
        world.push(head=head * 40, base=base * 40, delivery=f"d-{number}")
        for number, (head, base) in enumerate([("2", "1"), ("1", "2")] * 2)
    ]
    assert [world.campaign(one).base for one in made] == ["1" * 40] * 4
    assert [world.campaign(one).state for one in made] == ["superseded"] * 3 + ["planning"]


def test_a_campaign_without_base_or_of_a_pull_request_hands_on_no_base(world: World) -> None:
    world.push(base="")
    assert world.campaign(world.push(head="4" * 40, base="2" * 40, delivery="d-2")).base == "2" * 40
    of_pull = {"trigger": "pull_request:7", "ref": "refs/pull/7/head"}
    world.push(**of_pull, delivery="d-3")
    moved = world.push(**of_pull, head="4" * 40, base="3" * 40, delivery="d-4")
    assert world.campaign(moved).base == "3" * 40


def test_what_has_ended_is_not_superseded(world: World) -> None:
    older = world.push(base="")
    world.run()
    world.push(head="4" * 40)
    assert world.campaign(older).state == "done"


def test_the_engine_is_woken_after_the_commit_and_only_then(world: World) -> None:
    woken: list[int | None] = []
    with world.database.transaction() as session:
        handle(session, Intent(), wake=lambda: woken.append(count(world)))
        assert woken == []
    assert woken == [1]


def test_a_rolled_back_delivery_leaves_nothing_and_wakes_nobody(world: World) -> None:
    woken: list[bool] = []

    def deliver() -> NoReturn:
        with world.database.transaction() as session:
            handle(session, Intent(), wake=lambda: woken.append(True))
            raise LookupError

    with pytest.raises(LookupError):
        deliver()
    assert woken == []
    assert count(world) == 0
