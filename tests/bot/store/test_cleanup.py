"""A database that one run after another uses keeps verdicts and repeats, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from bot.store import Database, campaigns, outcomes
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
