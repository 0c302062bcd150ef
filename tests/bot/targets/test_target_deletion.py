"""What is kept of a repository goes, in files and rows; what others need stays; the audit says so."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from bot.artifacts import Artifacts
from bot.campaigns.services import Services, Settings
from bot.cli import cli
from bot.errors import UsageError
from bot.github import mirrors
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.store import Database, audit, inbox, target_deletion, target_rename
from bot.store.models import (
    CachedResponse,
    Campaign,
    CampaignCase,
    Delivery,
    Installation,
    Job,
    Target,
    TargetState,
)
from bot.targets import target_lifecycle
from bot.targets.dependencies import Dependencies
from bot.targets.periodic_tasks import list_tasks
from bot.targets.target_deletion import delete_target_data
from bot.worker import Worker
from fuzzing.file_trees import remove_tree
from tests.bot.targets.targets_kit import Clock, run_tasks

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOST, KEPT = "octo/lost", "octo/kept"
MINE, OURS, LISTED = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Two targets with a campaign each; one case is named by both, one is in a catalog."""
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    made.migrate()
    with made.transaction() as session:
        for number, target, cases in ((1, LOST, (MINE, OURS, LISTED)), (2, KEPT, (OURS,))):
            session.add(Target(name=target, github_id=number))
            session.add(
                Campaign(id=number, target=target, head="h", trigger="push", created_at=NOW, updated_at=NOW)
            )
            session.flush()
            for rank, case in enumerate(cases):
                session.add(CampaignCase(campaign_id=number, rank=rank, case_id=case))
    for path in (
        *(f"corpus/{case[:2]}/{case}/case.json" for case in (MINE, OURS, LISTED)),
        *(f"artifacts/{number}/report.html" for number in (1, 2)),
        *(f"git/octo/{name}.git/HEAD" for name in ("lost", "kept")),
        *(f"outbox/{target}/issue.md" for target in (LOST, KEPT)),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    catalog = tmp_path / "corpus" / "catalogs" / "isra-0.jsonl"
    catalog.parent.mkdir()
    catalog.write_text(json.dumps({"id": LISTED}) + "\n" + json.dumps({"skipped": {}}) + "\n")
    yield made
    made.close()


def files(folder: Path) -> set[str]:
    """The files there, but for the database's."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return {name for name in names if not name.startswith(("assay.db", "corpus/catalogs"))}


LEFT = {
    f"corpus/bb/{OURS}/case.json",
    f"corpus/cc/{LISTED}/case.json",
    "artifacts/2/report.html",
    "git/octo/kept.git/HEAD",
    f"outbox/{KEPT}/issue.md",
    "git/octo/lost.lock",  # empty; somebody may be waiting for it
}


def test_files_and_rows_go_and_what_others_need_stays(database: Database, tmp_path: Path) -> None:
    told = delete_target_data(
        database, tmp_path, Artifacts("", tmp_path), LOST, "it was asked for", NOW, actor="operator"
    )
    assert files(tmp_path) == LEFT
    assert (told.campaigns, told.cases, told.mirror) == (1, 1, True)
    assert told.rows == {"targets": 1, "campaigns": 1, "campaign_cases": 3}
    with database.reading() as session:
        assert not target_deletion.has_rows(session, LOST)
        assert target_deletion.has_rows(session, KEPT)
        last = audit.of_target(session, LOST)[0]
        assert (last.action, last.actor, last.reason) == ("forgotten", "operator", "it was asked for")


def test_half_forgotten_is_forgotten_by_the_next_try(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target_deletion, "delete_target", die)
        with pytest.raises(KeyboardInterrupt):
            delete_target_data(database, tmp_path, Artifacts("", tmp_path), LOST, "why", NOW)
    with database.reading() as session:
        assert session.get_one(Target, LOST).state == TargetState.REMOVED.value
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), LOST, "why", NOW)
    assert files(tmp_path) == LEFT


def is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_mirror_is_not_deleted_while_somebody_reads_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, deleted = tmp_path / "git/octo/lost.lock", {}

    def watched(path: Path) -> None:
        deleted[path.name] = is_locked(lock) if lock.exists() else False
        remove_tree(path)

    monkeypatch.setattr(mirrors, "remove_tree", watched)
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), LOST, "why", NOW)
    assert deleted["lost.git"]
    assert not is_locked(lock)


def test_a_mirror_that_was_being_made_while_all_went_goes_too(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waited for its lock makes it anew, and only then sees that its work is over."""
    delete_target, mirror = target_deletion.delete_target, tmp_path / "git/octo/lost.git"

    def anew(*about: Any) -> dict[str, int]:
        mirror.mkdir()
        return delete_target(*about)

    monkeypatch.setattr(target_deletion, "delete_target", anew)
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), LOST, "why", NOW)
    assert not mirror.exists()


def renamed(database: Database, *names: str) -> None:
    """LOST gets one name after another."""
    with database.transaction() as session:
        target = session.get_one(Target, LOST)
        for name in names:
            target = target_lifecycle.rename(session, target, name, NOW)


def make(tmp_path: Path, *paths: str) -> None:
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")


def test_what_lies_under_its_earlier_names_goes_too(database: Database, tmp_path: Path) -> None:
    renamed(database, "octo/second", "Other/Third", "octo/last")
    make(tmp_path, "git/octo/second.git/HEAD", "git/other/third.partial/HEAD", "outbox/octo/last/issue.md")
    told = delete_target_data(database, tmp_path, Artifacts("", tmp_path), "octo/last", "why", NOW)
    assert told.mirror
    assert files(tmp_path) - LEFT == {"git/octo/second.lock", "git/other/third.lock"}


def test_of_a_name_that_is_anothers_by_now_only_the_mirror_goes(database: Database, tmp_path: Path) -> None:
    """What the one left is in there, and can be fetched again; what was written for the other is its own."""
    renamed(database, "octo/second")
    with database.transaction() as session:
        target_lifecycle.get_or_create(session, LOST, 5, NOW)
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), "octo/second", "why", NOW)
    assert files(tmp_path) == LEFT | {f"outbox/{LOST}/issue.md"}


def test_a_name_that_was_taken_from_it_is_one_of_its_earlier_names(
    database: Database, tmp_path: Path
) -> None:
    """Another repository came to have its name before anybody told of its new one."""
    with database.transaction() as session:
        parked = target_rename.free_name(session, LOST)
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), parked, "why", NOW)
    assert files(tmp_path) == LEFT


def at_work(database: Database, tmp_path: Path) -> None:
    """Does the jobs that are due."""
    few = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW, monotonic=NOW.timestamp))
    settings = SimpleNamespace(data_dir=tmp_path)
    worker = Worker(JobQueue(database, cast("Settings", settings), cast("Services", few), Lane.QUICK))
    while worker.run_once():
        pass
    with database.reading() as session:
        assert {job.state for job in session.scalars(select(Job))} <= {"done"}


def test_a_rename_leaves_no_mirror_to_who_has_the_old_name_next(database: Database, tmp_path: Path) -> None:
    make(tmp_path, "git/octo/second.git/HEAD")
    renamed(database, "octo/second")
    at_work(database, tmp_path)
    mirrors = {path for path in files(tmp_path) if path.startswith("git/")}
    assert mirrors == {"git/octo/lost.lock", "git/octo/second.lock", "git/octo/kept.git/HEAD"}


def test_who_is_seen_under_a_name_that_was_anothers_gets_no_mirror_of_it(
    database: Database, tmp_path: Path
) -> None:
    with database.transaction() as session:
        assert target_lifecycle.get_or_create(session, LOST, 5, NOW).github_id == 5
    at_work(database, tmp_path)
    assert "git/octo/lost.git/HEAD" not in files(tmp_path)
    assert "git/octo/kept.git/HEAD" in files(tmp_path)


def test_a_name_in_other_letters_is_the_same_name(database: Database, tmp_path: Path) -> None:
    renamed(database, "Octo/Lost")
    at_work(database, tmp_path)
    assert "git/octo/lost.git/HEAD" in files(tmp_path)


def test_payloads_of_deliveries_about_it_go_and_their_ids_stay(database: Database, tmp_path: Path) -> None:
    bodies = {
        "by-id": {"repository": {"id": 1, "full_name": "octo/earlier-name"}},
        "by-name": {"repository": {"id": 5, "full_name": "Octo/Lost"}},
        "other": {"repository": {"id": 2, "full_name": KEPT}},
        "none": {"zen": "x"},
    }
    with database.transaction() as session:
        for name, body in bodies.items():
            inbox.store(session, [inbox.ReceivedDelivery(name, "push", json.dumps(body).encode(), NOW)])
    delete_target_data(database, tmp_path, Artifacts("", tmp_path), LOST, "why", NOW)
    with database.reading() as session:
        rows = {row.id: (bool(row.payload), row.state) for row in session.scalars(select(Delivery))}
    assert rows == {
        "by-id": (False, "ignored"),
        "by-name": (False, "ignored"),
        "other": (True, "pending"),
        "none": (True, "pending"),
    }


def test_an_uninstalled_repository_is_forgotten_after_its_time(database: Database, tmp_path: Path) -> None:
    clock = Clock(NOW)
    with database.transaction() as session:
        for number in (8, 9):
            session.add(
                Installation(id=number, account="octo", changed_at=NOW, state=TargetState.REMOVED.value)
            )
            session.add(CachedResponse(url=f"{number} /app?", etag="e", body={}, at=NOW))
        session.flush()
        session.get_one(Target, KEPT).installation_id = 8
        target = target_lifecycle.get_or_create(session, LOST, 1, NOW)
        target.installation_id = 9
        target_lifecycle.stop_watching(session, target, TargetState.REMOVED, "the App was uninstalled", NOW)
    dependencies = Dependencies(
        database=database,
        handle_intent=lambda *_: None,
        start=lambda *_: None,
        load_config=lambda *_: None,
        data_dir=tmp_path,
        artifacts=Artifacts("", tmp_path),
        clock=clock,
    )
    retention = [task for task in list_tasks() if task.name == "retention"]
    clock.advance(days=29)
    run_tasks(dependencies, retention)
    assert "git/octo/lost.git/HEAD" in files(tmp_path)
    clock.advance(days=2)
    run_tasks(dependencies, retention)
    assert files(tmp_path) == LEFT
    with database.reading() as session:
        assert [row.id for row in session.scalars(select(Installation))] == [8], "a target is left of it"
        assert [row.url for row in session.scalars(select(CachedResponse))] == ["8 /app?"]


@pytest.fixture
def settings(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del database
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))


@pytest.mark.usefixtures("settings")
def test_the_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["delete", "Octo/LOST", "--yes"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "octo/lost is deleted: 3 campaign_cases, 1 campaigns, 1 targets",
        "files: 1 campaign reports, 1 own cases, git mirror",
    ]
    assert files(tmp_path) == LEFT


@pytest.mark.usefixtures("settings")
def test_the_command_asks_first(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["delete", LOST], input="n\n")
    assert done.exit_code == 1
    assert "Delete all data of octo/lost?" in done.output
    assert "git/octo/lost.git/HEAD" in files(tmp_path)


@pytest.mark.usefixtures("settings")
def test_the_command_says_what_it_does_not_know() -> None:
    done = CliRunner().invoke(cli, ["delete", "octo/unknown", "--yes"])
    assert isinstance(done.exception, UsageError)
    assert "unknown repository 'octo/unknown'" in str(done.exception)


@pytest.mark.usefixtures("settings")
def test_the_command_warns_where_the_app_is_installed_still(database: Database) -> None:
    with database.transaction() as session:
        session.add(Installation(id=9, account="octo", changed_at=NOW - timedelta(days=1)))
        session.flush()
        session.get_one(Target, LOST).installation_id = 9
    done = CliRunner().invoke(cli, ["delete", LOST, "--yes", "--json"])
    assert json.loads(done.stdout)["campaigns"] == 1
    assert "uninstall it, or octo/lost is watched again" in done.stderr
