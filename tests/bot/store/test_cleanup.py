"""A database that one run after another uses keeps verdicts and repeats, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from bot.store import Database, campaigns, outcomes, retention
from bot.store.cleanup import prune
from bot.store.models import Base, Campaign, CampaignCase, CampaignState, Repeat, Side, Toolchain
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Outcome, Phase, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = CacheKey("t", "x", "CPU")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/runs.db")
    Base.metadata.create_all(made.engine)
    yield made
    made.close()


def crash(case: str, configuration: str = "") -> Outcome:
    return Outcome(case, "x", "t", "CPU", Verdict.CRASH, Phase.RUN, "no", configuration=configuration)


def campaign(database: Database, number: int, state: CampaignState, *repeats: Outcome) -> int:
    with database.transaction() as session:
        row = Campaign(
            target="x",
            head="installed",
            trigger=f"manual:{number}",
            state=state.value,
            created_at=NOW,
            updated_at=NOW,
        )
        made, _ = campaigns.create(session, row)
        campaigns.write_plan(session, made.id, ["c0", "c1"])
        outcomes.record(session, repeats, NOW)
        outcomes.record_repeats(session, made.id, Side.HEAD, [(0, one) for one in repeats])
        return made.id


def test_only_the_newest_repeats_and_all_verdicts_stay(database: Database) -> None:
    campaign(database, 1, CampaignState.DONE, crash("c0"), crash("c1"))
    other = campaign(database, 2, CampaignState.DONE, crash("c0", "optimization=basic"))
    last = campaign(database, 3, CampaignState.DONE, crash("c0"))
    killed = campaign(database, 4, CampaignState.RUNNING)
    with database.transaction() as session:
        prune(session)
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(CampaignCase)) == 0
        kept = session.execute(select(Repeat.campaign_id, Repeat.case_id).order_by(Repeat.campaign_id)).all()
        assert [tuple(row) for row in kept] == [(1, "c1"), (other, "c0"), (last, "c0")]
        assert session.get(Campaign, killed) is None, "nobody goes on with it"

        assert outcomes.get(session, "c1", KEY) == crash("c1")
    with database.transaction() as session:
        prune(session)
        assert session.scalar(select(func.count()).select_from(Repeat)) == 3


def test_what_a_toolchain_was_tested_for_stays_known(database: Database) -> None:
    """Ranking asks for the verdicts of a target's toolchains."""
    with database.transaction() as session:
        for number, digest in enumerate(["a", "a", "b", None]):
            row = Campaign(target="x", head="h", trigger=f"manual:{number}", state=CampaignState.DONE.value)
            row.created_at = row.updated_at = NOW
            if digest and session.get(Toolchain, digest) is None:
                session.add(toolchain(digest))
            row.head_toolchain = digest
            campaigns.create(session, row)
    with database.transaction() as session:
        prune(session)
    with database.reading() as session:
        kept = list(session.scalars(select(Campaign.trigger).order_by(Campaign.id)))
    assert kept == ["manual:1", "manual:2"]


def toolchain(digest: str) -> Toolchain:
    return Toolchain(
        digest=digest,
        backend="x",
        provisioner="p",
        label="",
        python="",
        versions={},
        requirements=[],
        created_at=NOW,
    )


def test_old_failures_are_kept_and_other_verdicts_are_not(database: Database) -> None:
    passing = [replace(crash(case), verdict=Verdict.PASS) for case in ("c1", "c2", "c3")]
    with database.transaction() as session:
        outcomes.record(session, [crash("c0"), *passing[:2]], NOW)
        outcomes.record(session, passing[2:], NOW + timedelta(days=2))
    deleted = []
    for _ in range(3):
        with database.transaction() as session:
            deleted.append(retention.prune_verdicts(session, NOW + timedelta(days=1), 1))
    assert deleted == [1, 1, 0]
    with database.reading() as session:
        assert [case for case in ("c0", "c1", "c2", "c3") if outcomes.get(session, case, KEY)] == ["c0", "c3"]


def test_a_plan_keeps_what_ran_and_its_length(database: Database) -> None:
    ended = [campaign(database, number, CampaignState.DONE, crash("c0")) for number in (1, 2)]
    failed = campaign(database, 3, CampaignState.FAILED)
    running = campaign(database, 4, CampaignState.RUNNING)
    with database.transaction() as session:
        for one in ended:
            made = Toolchain(
                digest="t", backend="x", provisioner="release", label="x 1", python="/x", versions={},
                requirements=[], created_at=NOW,
            )  # fmt: skip
            campaigns.set_toolchain(session, campaigns.get(session, one), Side.HEAD, made)

    def kept(campaign_id: int) -> list[str]:
        with database.reading() as session:
            return list(campaigns.planned_cases(session, campaign_id))

    def prune_at(at: datetime) -> int:
        with database.transaction() as session:
            return retention.prune_plans(session, at, 3)

    assert prune_at(NOW) == 0, "none ended before"
    assert prune_at(NOW + timedelta(hours=1)) == 3, "no more than the limit"
    assert prune_at(NOW + timedelta(hours=1)) == 1
    assert prune_at(NOW + timedelta(hours=1)) == 0
    assert [kept(one) for one in (*ended, failed, running)] == [["c0"], ["c0"], [], ["c0", "c1"]]
    with database.reading() as session:
        assert [campaigns.planned(session, one) for one in (*ended, failed, running)] == [2, 2, 2, 2]
