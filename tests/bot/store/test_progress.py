"""How far a campaign is, told from its rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, campaigns, outcomes, progress, reductions
from bot.store.models import Base, Campaign, CampaignState, Effect, EffectState, Reduction, Side, Toolchain
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Outcome, Phase, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CASES = ["c0", "c1", "c2", "c3"]
KEYS = {side: CacheKey(side.value, "x", "CPU") for side in Side}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    with made.transaction() as session:
        for side in Side:
            session.add(
                Toolchain(
                    digest=side.value, backend="x", provisioner="p", label=f"x of {side.value}",
                    python="", versions={}, requirements=[], created_at=NOW,
                )
            )  # fmt: skip
    yield made
    made.close()


def add(database: Database, state: CampaignState, *, toolchains: bool = True, delivery: str = "d") -> int:
    with database.transaction() as session:
        row = Campaign(
            target="t", head=delivery, base="b", trigger="push", delivery=delivery,
            config={"backend": "x", "device": "CPU"}, created_at=NOW, updated_at=NOW,
        )  # fmt: skip
        if toolchains:
            row.head_toolchain, row.base_toolchain = "head", "base"
        made, _ = campaigns.create(session, row)
        campaigns.write_plan(session, made.id, CASES)
        made.state = state.value
        return made.id


def outcome(case: str, side: Side) -> Outcome:
    key = KEYS[side]
    return Outcome(case, key.backend, key.toolchain, key.device, Verdict.PASS, Phase.RUN, "fine")


def ran(database: Database, side: Side, *cases: str) -> None:
    with database.transaction() as session:
        outcomes.record(session, [outcome(case, side) for case in cases], NOW)


def seen(database: Database, delivery: str = "d") -> progress.CampaignProgress:
    with database.reading() as session:
        found = progress.of_delivery(session, delivery)
    assert found is not None
    return found


def test_a_delivery_without_a_campaign_has_no_progress(database: Database) -> None:
    add(database, CampaignState.RUNNING)
    with database.reading() as session:
        assert progress.of_delivery(session, "another") is None


@pytest.mark.parametrize(
    ("state", "side"), [(CampaignState.RUNNING, Side.HEAD), (CampaignState.COMPARING, Side.BASE)]
)
def test_cases_are_counted_on_the_side_that_is_run(
    state: CampaignState, side: Side, database: Database
) -> None:
    other = Side.BASE if side is Side.HEAD else Side.HEAD
    campaign = add(database, state)
    ran(database, side, "c0", "c2", "c3", "not planned")
    ran(database, other, "c1")
    found = seen(database)
    assert (found.campaign, found.state) == (campaign, state)
    assert (found.done, found.total) == (3, 4)
    assert found.note == f"3 of 4 cases on x of {side.value}"


def test_confirming_counts_fresh_runs_of_this_campaign(database: Database) -> None:
    mine, other = (
        add(database, CampaignState.CONFIRMING),
        add(database, CampaignState.CONFIRMING, delivery="e"),
    )
    with database.transaction() as session:
        for campaign, repeats in ((mine, 2), (other, 5)):
            runs = [(repeat, outcome("c0", Side.HEAD)) for repeat in range(repeats)]
            outcomes.record_repeats(session, campaign, Side.HEAD, runs)
    found = seen(database)
    assert (found.done, found.total, found.note) == (2, 0, "2 runs")
    assert seen(database, "e").done == 5


def test_once_all_cases_ran_at_base_the_fresh_runs_are_counted(database: Database) -> None:
    campaign = add(database, CampaignState.COMPARING)
    ran(database, Side.BASE, *CASES)
    with database.transaction() as session:
        outcomes.record_repeats(session, campaign, Side.BASE, [(0, outcome("c0", Side.BASE))])
    found = seen(database)
    assert (found.done, found.total, found.note) == (4, 4, "fresh runs of what changed: 1")


def test_reducing_counts_what_was_made_small_at_head(database: Database) -> None:
    add(database, CampaignState.REDUCING)
    with database.transaction() as session:
        for case_id, reduced, side in (("c0", "s", Side.HEAD), ("c1", "", Side.HEAD), ("c2", "s", Side.BASE)):
            key = KEYS[side]
            row = Reduction(
                case_id=case_id, toolchain=key.toolchain, backend=key.backend, device=key.device,
                configuration="", reduced=reduced, reason="", runs=1, seconds=0.1, body={}, recorded_at=NOW,
            )  # fmt: skip
            reductions.record(session, row)
    found = seen(database)
    assert (found.done, found.total, found.note) == (1, 0, "1 so far")


def test_a_running_campaign_without_its_toolchain_has_done_nothing(database: Database) -> None:
    add(database, CampaignState.COMPARING, toolchains=False)
    found = seen(database)
    assert (found.done, found.total, found.note) == (0, 0, "")


@pytest.mark.parametrize(
    "state",
    [
        CampaignState.PLANNING, CampaignState.PROVISIONING, CampaignState.REPORTING,
        CampaignState.DONE, CampaignState.FAILED, CampaignState.SUPERSEDED,
    ],
)  # fmt: skip
def test_other_states_speak_for_themselves(state: CampaignState, database: Database) -> None:
    add(database, state)
    found = seen(database)
    assert (found.state, found.done, found.total, found.note) == (state, 0, 0, "")


def test_the_reason_of_an_end_is_told(database: Database) -> None:
    campaign = add(database, CampaignState.FAILED)
    with database.transaction() as session:
        campaigns.get(session, campaign).reason = "the disk is full"
    assert seen(database).reason == "the disk is full"


def test_effects_wait_until_they_are_sent_or_given_up(database: Database) -> None:
    campaign = add(database, CampaignState.DONE)
    other = add(database, CampaignState.DONE, delivery="e")
    with database.transaction() as session:
        for number, state in enumerate(EffectState):
            for owner in (campaign, other) if state is EffectState.PENDING else (campaign,):
                session.add(
                    Effect(
                        key=f"{owner}-{number}", kind="issue", target="t", campaign_id=owner,
                        payload={}, state=state.value, created_at=NOW,
                    )
                )  # fmt: skip
    assert seen(database).unsent == 2, "one intended, one being sent"
    assert seen(database, "e").unsent == 1
