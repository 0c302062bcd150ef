"""What cases did before, by target and backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.store import Database, campaigns, outcomes
from bot.store.case_history import CaseHistory, past
from bot.store.models import Base, Campaign, Toolchain
from fuzzing.outcomes import Outcome, Phase, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    with made.transaction() as session:
        for digest in ("head", "base", "other"):
            session.add(Toolchain(digest=digest, backend="x", provisioner="p", label="", python="",
                                  versions={}, requirements=[], created_at=NOW))  # fmt: skip
        for target, head, base in (("mine", "head", "base"), ("theirs", "other", None)):
            row = Campaign(target=target, head="h", trigger="push", created_at=NOW, updated_at=NOW)
            row.head_toolchain, row.base_toolchain = head, base
            campaigns.create(session, row)
    yield made
    made.close()


def outcome(case: str, verdict: Verdict, toolchain: str = "head", **durations: float) -> Outcome:
    return Outcome(case, "x", toolchain, "CPU", verdict, Phase.RUN, "", durations=durations)


def record(database: Database, at: datetime, *found: Outcome) -> None:
    with database.transaction() as session:
        outcomes.record(session, found, at)


def known(database: Database, target: str = "mine", before: datetime = NOW + DAY) -> list[CaseHistory]:
    with database.reading() as session:
        return list(past(session, target, "x", before))


def test_runs_findings_and_seconds_are_summed_over_toolchains(database: Database) -> None:
    crash = outcome("c", Verdict.CRASH, "base", convert=0.5, compile=0.25, **{"import": 100.0})
    record(database, NOW - 2 * DAY, crash)
    record(database, NOW - DAY, outcome("c", Verdict.WRONG_RESULT, run=0.25))
    record(database, NOW, outcome("a", Verdict.PASS, run=1.0), outcome("b", Verdict.UNSUPPORTED))
    assert known(database) == [
        CaseHistory("a", 1, 0, None, 1.0),
        CaseHistory("b", 1, 0, None, 0.0),
        CaseHistory("c", 2, 2, 2.0, 0.5),
    ]


def test_every_configuration_counts_and_other_backends_do_not(database: Database) -> None:
    one = outcome("c", Verdict.CRASH)
    record(database, NOW, one, replace(one, configuration="level=0"), replace(one, backend="y"))
    assert [(each.case, each.runs, each.findings) for each in known(database)] == [("c", 2, 2)]


def test_only_what_the_target_was_tested_with_and_what_was_before(database: Database) -> None:
    record(database, NOW, outcome("c", Verdict.CRASH), outcome("d", Verdict.PASS, "other"))
    assert [each.case for each in known(database)] == ["c"]
    assert [each.case for each in known(database, "theirs")] == ["d"]
    assert known(database, before=NOW) == [], "a campaign's own verdicts are none of its history"
    assert known(database, "nobody") == []
