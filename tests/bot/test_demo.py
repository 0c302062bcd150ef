"""The demonstration's stage: the same commits each time, and a service that really checks signatures."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import urllib.error
from pathlib import Path

import pytest

from bot import demo
from bot.config import parse_config
from bot.errors import InfrastructureError
from bot.store import Database, inbox, now
from bot.store.models import DeliveryState
from tests.support import live_service
from tests.support.live_service import wait_for

BASE, HEAD = "2024.0.0", "2026.4.1"


def git(repository: Path, *args: str) -> str:
    return subprocess.run(
        ["git", "-C", repository, *args], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_repository_pins_one_release_after_the_other(tmp_path: Path) -> None:
    stage = demo.make_repository(tmp_path / "repositories", BASE, HEAD)
    bare = tmp_path / "repositories" / f"{demo.TARGET}.git"
    assert git(bare, "rev-list", demo.BRANCH).split() == [stage.head, stage.base]
    for sha, release in ((stage.base, BASE), (stage.head, HEAD)):
        assert git(bare, "show", f"{sha}:requirements.txt") == f"openvino=={release}"
        config = parse_config(git(bare, "show", f"{sha}:.github/assay.yml").encode())
        assert (config.backend, config.reports.mode) == ("openvino", "dry-run")


def test_a_second_demo_begins_anew_and_keeps_releases(tmp_path: Path) -> None:
    """It waited forever: to the first one's database the push was nothing new."""
    out = tmp_path / "out"
    data = demo.prepare_folder(out)
    for result in (data / "assay.db", data / "toolchains" / "wheel", data / "outbox" / "issue.md"):
        result.parent.mkdir(exist_ok=True)
        result.touch()
    assert demo.prepare_folder(out) == data
    assert sorted(path.name for path in data.rglob("*")) == ["toolchains", "wheel"]


def test_a_push_that_starts_nothing_ends_the_demo_with_the_reason(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    arrived = [inbox.ReceivedDelivery(name, "push", b"{}", now()) for name in ("waits", "done", "ignored")]
    with database.transaction() as session:
        inbox.store(session, arrived)
        done = inbox.DeliveryResult("done", DeliveryState.DONE, "campaign 1")
        ignored = inbox.DeliveryResult("ignored", DeliveryState.IGNORED, "already the known head")
        inbox.record_results(session, [done, ignored])
    with database.reading() as session:
        reasons = [inbox.refusal(session, arrival.id) for arrival in arrived]
    assert reasons == [None, None, "already the known head"]


def test_its_commits_are_the_same_each_time_whoever_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = demo.make_repository(tmp_path / "one", BASE, HEAD)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n  name = Another\n[core]\n  autocrlf = true\n")
    assert demo.make_repository(tmp_path / "two", BASE, HEAD) == first
    assert demo.make_repository(tmp_path / "two", BASE, HEAD) == first, "made again in the same place"
    assert demo.make_repository(tmp_path / "three", BASE, "2025.0.0").head != first.head


def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="git is not installed"):
        demo.make_repository(tmp_path / "repositories", BASE, HEAD)


def test_a_signed_push_is_taken_and_a_forged_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_GITHUB_MODE", "live")  # of whoever runs the demo; it must not matter
    stage = demo.make_repository(tmp_path / "repositories", BASE, BASE)
    data = tmp_path / "data"
    data.mkdir()
    with demo.service(data, tmp_path / "repositories", tmp_path / "service.log") as running:
        forged = dataclasses.replace(running, secret="guess")
        with pytest.raises(urllib.error.HTTPError) as refused:
            demo.deliver(forged, stage)
        refused.value.close()
        assert refused.value.code == 401
        delivery = demo.deliver(running, stage)
        _wait_for_the_campaign(data, delivery)
    assert running.process.returncode is not None


def _wait_for_the_campaign(data: Path, delivery: str) -> None:
    with live_service.rows(data) as database:
        wait_for(lambda: live_service.seen(database, delivery), "the delivery to become a campaign")


def test_a_service_that_cannot_start_shows_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "assay.toml").write_text("workers = 'none'\n")
    with (
        pytest.raises(InfrastructureError, match="did not start") as reported,
        demo.service(data, tmp_path, tmp_path / "log"),
    ):
        raise AssertionError("it must not start")
    assert "next:" in str(reported.value)
    assert os.listdir(data) == ["assay.toml"]
