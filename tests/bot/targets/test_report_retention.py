"""Reports are deleted some time after their campaign ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.artifacts import PAGE, Artifacts
from bot.store import Database
from bot.store.models import Campaign, CampaignState
from bot.targets.dependencies import Dependencies, RetentionPolicy
from bot.targets.periodic_tasks import list_tasks
from tests.bot.targets.targets_kit import Clock, run_tasks

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def test_reports_of_ended_campaigns_go_after_their_time_and_rows_stay(tmp_path: Path) -> None:
    database, artifacts, clock = (
        Database(f"sqlite:///{tmp_path}/assay.db"),
        Artifacts("", tmp_path),
        Clock(NOW),
    )
    database.migrate()
    states = (CampaignState.DONE, CampaignState.REPORTING, CampaignState.SUPERSEDED)
    with database.transaction() as session:
        for number, state in enumerate(states, 1):
            session.add(Campaign(id=number, target="t", head=f"{number}", trigger="push", state=state.value,
                                 created_at=NOW, updated_at=NOW))  # fmt: skip
            artifacts.folder(number).mkdir(parents=True)
            (artifacts.folder(number) / PAGE).touch()

    def clean(after: timedelta, reports: timedelta | None) -> set[int]:
        clock.advance(days=after.days)
        dependencies = Dependencies(
            database=database,
            handle_intent=lambda *_: None,
            start=lambda *_: None,
            load_config=lambda *_: None,
            data_dir=tmp_path,
            artifacts=artifacts,
            retention_policy=RetentionPolicy(reports=reports),
            clock=clock,
        )
        run_tasks(dependencies, [task for task in list_tasks() if task.name == "cleanup"])
        return artifacts.campaigns()

    assert clean(timedelta(days=1), None) == {1, 2, 3}, "for ever"
    assert clean(timedelta(days=8), timedelta(days=10)) == {1, 2, 3}
    assert clean(timedelta(days=2), timedelta(days=10)) == {2}
    with database.reading() as session:
        assert session.query(Campaign).count() == 3
    database.close()
