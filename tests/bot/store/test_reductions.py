from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.store import Database, reductions
from bot.store.models import Reduction
from bot.store.outcomes import CacheKey
from tests.bot.store.test_outcomes import database

__all__ = ["database"]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = CacheKey("new", "x", "CPU", "")


def row(key: CacheKey, reduced: str, at: datetime = NOW) -> Reduction:
    return Reduction(
        case_id="c", toolchain=key.toolchain, backend=key.backend, device=key.device,
        configuration=key.configuration, reduced=reduced, reason="", runs=1, seconds=0.5, body={"runs": 1},
        recorded_at=at,
    )  # fmt: skip


def test_the_first_reduction_of_a_case_at_a_place_stays(database: Database) -> None:
    with database.transaction() as session:
        assert reductions.get(session, "c", KEY) is None
        reductions.record(session, row(KEY, "first"))
        reductions.record(session, row(KEY, "second"))
    with database.reading() as session:
        kept = reductions.get(session, "c", KEY)
        assert kept is not None
        assert (kept.reduced, kept.body) == ("first", {"runs": 1})
        assert reductions.get(session, "c", replace(KEY, device="GPU")) is None


def test_the_latest_that_worked_on_another_toolchain_is_found(database: Database) -> None:
    old, older, vain = (replace(KEY, toolchain=name) for name in ("old", "older", "vain"))
    with database.transaction() as session:
        reductions.record(session, row(KEY, "mine"))
        assert reductions.find_on_other_toolchain(session, "c", KEY) is None
        reductions.record(session, row(older, "older"))
        reductions.record(session, row(old, "old", NOW + timedelta(days=1)))
        reductions.record(session, row(vain, "", NOW + timedelta(days=2)))
        reductions.record(
            session, row(replace(old, configuration="level=0"), "else", NOW + timedelta(days=3))
        )
    with database.reading() as session:
        found = reductions.find_on_other_toolchain(session, "c", KEY)
        assert found is not None
        assert found.reduced == "old"
        assert reductions.find_on_other_toolchain(session, "other", KEY) is None
