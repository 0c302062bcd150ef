from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import InternalError
from bot.leases import LeaseLost
from bot.store import Database, campaigns
from bot.store.campaigns import Session
from bot.store.models import Base, Campaign, CampaignCase, CampaignState, Side, Toolchain

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    yield made
    made.close()


def row(**fields: str) -> Campaign:
    given = {"target": "octo/compiler", "head": "a", "base": "b", "trigger": "push", "ref": "main"} | fields
    return Campaign(**given, created_at=NOW, updated_at=NOW)


def make(database: Database, **fields: str) -> int:
    with database.transaction() as session:
        return campaigns.create(session, row(**fields))[0].id


def state(database: Database, campaign_id: int) -> Campaign:
    with database.reading() as session:
        return campaigns.get(session, campaign_id)


def test_create_is_idempotent_and_keeps_the_first(database: Database) -> None:
    with database.transaction() as session:
        first, new = campaigns.create(session, row(ref="one"))
        second, again = campaigns.create(session, row(ref="two"))
    assert (new, again) == (True, False)
    assert (first.id, first.ref) == (second.id, "one")
    assert (first.state, first.config, first.clock, first.attempts) == ("planning", {}, {}, 0)


def test_claims_go_oldest_first_and_to_one_owner_each(database: Database) -> None:
    one, two = make(database), make(database, target="octo/other")

    def claim(owner: str) -> int | None:
        with database.transaction() as session:
            found = campaigns.claim(session, owner, NOW, LATER)
            return None if found is None else found.id

    assert [claim("x"), claim("y"), claim("z")] == [one, two, None]


def test_a_lease_runs_out(database: Database) -> None:
    make(database)
    with database.transaction() as session:
        campaigns.claim(session, "x", NOW, LATER)
    with database.reading() as session:
        assert not campaigns.any_due(session, LATER - timedelta(seconds=1))
        assert campaigns.any_due(session, LATER)


@pytest.mark.parametrize("ended", [state.value for state in CampaignState if state.ended])
def test_what_has_ended_is_never_due_nor_held(database: Database, ended: str) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaign = campaigns.get(session, campaign_id)
        campaign.state, campaign.owner = ended, "x"
    with database.reading() as session:
        assert not campaigns.any_due(session, LATER)
        assert not campaigns.is_held(session, campaign_id, "x")
        with pytest.raises(LeaseLost):
            campaigns.lock_held(session, campaign_id, "x")


def test_held_refuses_another_owner(database: Database) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaigns.claim(session, "x", NOW, LATER)
    with database.transaction() as session:
        assert campaigns.lock_held(session, campaign_id, "x").id == campaign_id
        with pytest.raises(LeaseLost):
            campaigns.lock_held(session, campaign_id, "y")


def test_moving_frees_the_lease_and_the_attempts(database: Database) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaign = campaigns.get(session, campaign_id)
        campaigns.postpone(campaign, LATER)
        campaigns.move(campaign, CampaignState.PROVISIONING, NOW, "why")
    found = state(database, campaign_id)
    assert (found.state, found.owner, found.lease_until, found.attempts, found.reason) == (
        "provisioning", "", None, 0, "why",
    )  # fmt: skip


def test_postponing_counts_and_waits(database: Database) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaigns.postpone(campaigns.get(session, campaign_id), LATER)
    assert state(database, campaign_id).attempts == 1
    with database.reading() as session:
        assert not campaigns.any_due(session, NOW)
        assert campaigns.any_due(session, LATER)


def test_release_gives_back_ones_own_lease_only(database: Database) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaigns.claim(session, "x", NOW, LATER)
        campaigns.release_lease(session, campaign_id, "y")
    assert state(database, campaign_id).owner == "x"
    with database.transaction() as session:
        campaigns.release_lease(session, campaign_id, "x")
    assert state(database, campaign_id).owner == ""


@given(st.lists(st.floats(0, 100), max_size=8), st.floats(0, 50))
def test_the_clock_only_grows_and_reaches_what_it_is_raised_to(seconds: list[float], least: float) -> None:
    campaign = Campaign(clock={})
    sums = [campaigns.add_seconds(campaign, "running", part) for part in seconds]
    assert sums == sorted(sums)
    assert campaigns.add_seconds(campaign, "running", 0, at_least=least) >= least
    assert campaigns.seconds_spent(campaign, "running") == pytest.approx(max(sum(seconds), least), abs=0.01)
    assert campaigns.seconds_spent(campaign, "confirming") == 0


def test_the_plan_is_replaced_whole_and_ranked_in_order(database: Database) -> None:
    campaign_id = make(database)
    many = [f"{n:064x}" for n in range(2 * campaigns.CHUNK + 1)]
    with database.transaction() as session:
        campaigns.write_plan(session, campaign_id, many)
    with database.transaction() as session:
        assert campaigns.write_plan(session, campaign_id, iter(reversed(many))) == len(many)
    with database.reading() as session:
        assert campaigns.planned(session, campaign_id) == len(many)
        assert session.get_one(CampaignCase, (campaign_id, 0)).case_id == many[-1]
        assert session.get_one(CampaignCase, (campaign_id, len(many) - 1)).case_id == many[0]


def toolchain() -> Toolchain:
    return Toolchain(
        digest="d", backend="x", provisioner="release", label="x 1", python="/p", versions={"x": "1"},
        requirements=["x==1"], created_at=NOW,
    )  # fmt: skip


def test_a_toolchain_is_recorded_once_for_both_sides(database: Database) -> None:
    campaign_id = make(database)
    with database.transaction() as session:
        campaign = campaigns.get(session, campaign_id)
        campaigns.set_toolchain(session, campaign, Side.HEAD, toolchain())
        campaigns.set_toolchain(session, campaign, Side.BASE, toolchain())
    found = state(database, campaign_id)
    assert (found.head_toolchain, found.base_toolchain) == ("d", "d")
    with database.reading() as session:
        assert campaigns.toolchain(session, "d").versions == {"x": "1"}
        with pytest.raises(InternalError):
            campaigns.toolchain(session, "e")


def test_a_toolchain_that_moved_is_found_at_its_new_place(database: Database) -> None:
    campaign_id = make(database)
    moved = toolchain()
    moved.python = "/elsewhere/python"
    for row in (toolchain(), moved):
        with database.transaction() as session:
            campaigns.set_toolchain(session, campaigns.get(session, campaign_id), Side.HEAD, row)
    with database.reading() as session:
        assert campaigns.toolchain(session, "d").python == "/elsewhere/python"


def test_get_of_nothing_is_a_bug_of_ours(database: Database) -> None:
    with database.reading() as session, pytest.raises(InternalError):
        campaigns.get(session, 7)


def test_insert_missing_counts_what_is_new(database: Database) -> None:
    values = {"campaign_id": make(database), "rank": 0, "case_id": "c"}

    def insert(session: Session) -> int:
        return campaigns.insert_missing(session, CampaignCase, [values, values | {"rank": 1}])

    with database.transaction() as session:
        assert (insert(session), insert(session)) == (2, 0)
