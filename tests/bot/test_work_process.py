"""The work of a service in another process: its start, its reports, its restart, and why it cannot start."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from bot import work_process
from bot.app import build
from bot.errors import InfrastructureError, SettingsError
from bot.loop import FAULTS
from bot.metrics import Metrics
from bot.processes import BACKGROUND_NICENESS
from bot.service import Service
from bot.settings import Settings
from bot.store import Database, inbox, now
from bot.work_process import WorkProcess
from tests.support.live_service import wait_for


def settings_for(folder: Path) -> Settings:
    return Settings.model_validate({"data_dir": folder, "webhook_secret": "s"})


def test_deliveries_are_read_by_another_process_and_by_the_next_one_if_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_process, "MIN_RESTART_S", 0.1)
    work = WorkProcess()
    service = Service(settings_for(tmp_path), work)
    build(service)
    service.open()
    try:
        assert service.problems() == {}
        database = service.database
        assert database is not None
        arrive(database, "d-1")
        work.wake()
        wait_for(lambda: "pending" not in states(database), "the first delivery", timeout_s=40)
        assert states(database) == {"done": 1}
        assert work._process is not None
        nice, own = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (work._process.pid, 0))
        assert nice == min(19, own + BACKGROUND_NICENESS)
        os.kill(killed := work._process.pid, signal.SIGKILL)
        wait_for(lambda: work._process is None or work._process.pid != killed, "its end")
        arrive(database, "d-2")
        wait_for(lambda: "pending" not in states(database), "the second delivery", timeout_s=40)
        assert states(database) == {"done": 2}
        wait_for(lambda: service.problems() == {}, "the next process to report")
    finally:
        service.close()
    ended = {"name": "work"}
    assert service.metrics.registry.get_sample_value("assay_background_failures_total", ended) == 1
    assert not Path(f"/proc/{killed}").exists()


def arrive(database: Database, delivery: str) -> None:
    with database.transaction() as session:
        inbox.store(session, [inbox.ReceivedDelivery(delivery, "ping", b'{"hook_id": 1}', now())])


def states(database: Database) -> dict[str, int]:
    with database.reading() as session:
        return inbox.counts(session)


def fake(tmp_path: Path, script: str) -> tuple[WorkProcess, Metrics]:
    """A started process that runs a script instead."""
    work, metrics = WorkProcess(("-c", script)), Metrics()
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    work.start(settings_for(tmp_path), database, metrics)
    return work, metrics


@pytest.mark.parametrize(
    ("kind", "expected"), [("SettingsError", SettingsError), ("sys", InfrastructureError)]
)
def test_an_error_of_its_start_is_raised_here(tmp_path: Path, kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected, match="no key"):
        fake(tmp_path, f'print(\'{{"error": "{kind}", "message": "no key"}}\')')


def test_a_process_that_ends_without_a_word_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="status 7"):
        fake(tmp_path, "raise SystemExit(7)")


def test_its_problems_and_faults_are_those_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = '{"problems": {"publisher": "a bug"}, "faults": {"publisher": %d}, "failures": {"job": %d}}'
    before = FAULTS.labels(loop="publisher")._value.get()
    work, metrics = fake(
        tmp_path,
        f"import sys; print('{status % (1, 1)}'); print('{status % (3, 1)}', flush=True); sys.stdin.read()",
    )
    wait_for(lambda: FAULTS.labels(loop="publisher")._value.get() - before == 3, "the second status")
    assert metrics.registry.get_sample_value("assay_background_failures_total", {"name": "job"}) == 1
    assert work.problems() == {"publisher": "a bug"}
    later = time.monotonic() + 2 * work_process.MAX_SILENCE_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert "has not reported for" in work.problems()["work"]
    monkeypatch.undo()
    work.stop()
