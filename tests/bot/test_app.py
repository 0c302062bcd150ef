"""The composed service: probes, metrics, threads, one for each data folder."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from bot import background
from bot.app import create_app
from bot.background import Background, BackgroundWork, IntervalJob, ServiceParts
from bot.data_lock import CORPUS_LOCK, DataLock
from bot.errors import InfrastructureError
from bot.runners.exchange import sign as sign_request
from bot.service import Service
from bot.settings import Settings
from bot.webhooks import Intent
from bot.webhooks.signature import sign

Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]


class Worker:
    """A background that does what it is told when it is told."""

    name = "worker"

    def __init__(self) -> None:
        self.started = threading.Event()
        self.fail = threading.Event()
        self.stopped = threading.Event()

    def wake(self) -> None:
        pass

    def run_forever(self, stop: threading.Event) -> None:
        self.started.set()
        while not stop.is_set():
            if self.fail.wait(0.01):
                raise ZeroDivisionError("the engine's bug")
        self.stopped.set()


def settings_for(folder: Path) -> Settings:
    values: dict[str, Any] = {"data_dir": folder, "webhook_secret": "s"}
    return Settings(**values)


def composed(
    *backgrounds: Background, jobs: tuple[IntervalJob, ...] = (), handle: Callable[..., None] | None = None
) -> Callable[..., ServiceParts]:
    return lambda *_: ServiceParts(handle=handle or (lambda *_: None), backgrounds=backgrounds, jobs=jobs)


def test_runners_are_let_in_where_there_is_a_key_and_sign(tmp_path: Path, serving: Serving) -> None:
    path = f"/runners/{'0' * 32}/alive"
    with serving(create_app(settings_for(tmp_path), services=composed())) as client:
        assert client.post(path).status_code == 404
    values: dict[str, Any] = {"data_dir": tmp_path, "webhook_secret": "s", "runner_key": "k" * 32}
    with serving(create_app(Settings(**values), services=composed())) as client:
        assert client.post(path).status_code == 401
        signature = sign_request(b"k" * 32, "0" * 32, "alive", 0, b"")
        headers = {"X-Assay-Number": "0", "X-Assay-Signature": signature}
        assert client.post(path, headers=headers).status_code == 410


def test_healthy_and_ready(tmp_path: Path, serving: Serving) -> None:
    worker = Worker()
    with serving(create_app(settings_for(tmp_path), services=composed(worker))) as client:
        assert worker.started.wait(600)
        assert client.get("/healthz").json() == {"status": "ok"}
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready", "problems": {}})
    assert worker.stopped.is_set(), "shutting down waits for the background"


def test_a_background_that_died_is_shown_and_started_again(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MIN_RESTART_S", 1.0)
    worker = Worker()
    app = create_app(settings_for(tmp_path), services=composed(worker))
    with serving(app) as client:
        assert worker.started.wait(600)
        worker.started.clear()
        worker.fail.set()
        while (ready := client.get("/readyz")).status_code == 200:
            time.sleep(0.01)
        worker.fail.clear()
        assert ready.json()["problems"] == {"worker": "ZeroDivisionError: the engine's bug"}
        assert client.get("/healthz").status_code == 200
        assert 'assay_background_failures_total{name="worker"} 1.0' in client.get("/metrics").text
        assert worker.started.wait(600)
        while client.get("/readyz").status_code == 503:
            time.sleep(0.01)
    assert worker.stopped.is_set()


def test_not_ready_when_the_tables_are_another_versions(tmp_path: Path, serving: Serving) -> None:
    app = create_app(settings_for(tmp_path), services=composed())
    with serving(app) as client:
        database = app.state.service.database
        with database.transaction() as session:
            session.execute(text("update alembic_version set version_num = '9999'"))
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "tables" in ready.json()["problems"]["database"]


def test_a_delivery_reaches_the_handler_and_the_metrics(tmp_path: Path, serving: Serving) -> None:
    intents: list[Intent] = []
    handled = threading.Event()

    def handle(_session: object, intent: Intent) -> None:
        intents.append(intent)
        handled.set()

    body = json.dumps(
        {
            "ref": "refs/heads/main",
            "before": "1" * 40,
            "after": "2" * 40,
            "repository": {"full_name": "octo-org/compiler"},
        }
    ).encode()
    app = create_app(settings_for(tmp_path), services=composed(handle=handle))
    with serving(app) as client:
        for _ in range(2):
            answer = client.post(
                "/webhooks/github",
                content=body,
                headers={
                    "X-GitHub-Delivery": "d-1",
                    "X-GitHub-Event": "push",
                    "X-Hub-Signature-256": sign(b"s", body),
                },
            )
            assert answer.status_code == 202
        client.post("/webhooks/github", content=body, headers={"X-GitHub-Event": "made-up"})
        assert handled.wait(600)
        app.state.service.close()  # the reader has committed then
        app.state.service.open()
        shown = client.get("/metrics").text
    assert [intent.delivery for intent in intents] == ["d-1"]
    for line in (
        'assay_deliveries_total{event="push",result="stored"} 1.0',
        'assay_deliveries_total{event="push",result="repeated"} 1.0',
        'assay_deliveries_total{event="other",result="refused_401"} 1.0',
        "assay_acknowledgement_seconds_count 3.0",
        "assay_inbox_backlog 0.0",
        'assay_inbox{state="done"} 1.0',
        'assay_campaigns{state="running"} 0.0',
        'assay_outcomes{verdict="wrong_result"} 0.0',
        'assay_effects{state="sent"} 0.0',
        "assay_database_up 1.0",
    ):
        assert line in shown.splitlines()


def test_metrics_outlive_the_database(tmp_path: Path, serving: Serving) -> None:
    app = create_app(settings_for(tmp_path), services=composed())
    with serving(app) as client:
        with app.state.service.database.transaction() as session:
            session.execute(text("drop table effects"))
        shown = client.get("/metrics").text.splitlines()
    assert "assay_database_up 0.0" in shown
    assert "assay_acknowledgement_seconds_count 0.0" in shown


def test_jobs_run_and_their_failures_are_counted(tmp_path: Path) -> None:
    ran = threading.Event()
    calls: list[int] = []

    def job() -> None:
        calls.append(1)
        if len(calls) == 2:
            ran.set()
        raise InfrastructureError("not now")

    service = Service(
        settings_for(tmp_path), BackgroundWork(composed(jobs=(IntervalJob("publish", 0.01, job),)))
    )
    service.open()
    assert ran.wait(600)
    service.close()
    failures = service.metrics.registry.get_sample_value(
        "assay_background_failures_total", {"name": "publish"}
    )
    assert failures == len(calls)


def test_one_service_for_each_data_folder(tmp_path: Path) -> None:
    first = Service(settings_for(tmp_path), BackgroundWork(composed()))
    second = Service(settings_for(tmp_path), BackgroundWork(composed()))
    first.open()
    with pytest.raises(InfrastructureError, match=r"process \d+ on .*, since .*ASSAY_DATA_DIR"):
        second.open()
    first.close()
    second.open()
    second.close()


@pytest.mark.parametrize("exists", [True, False])
def test_the_data_folder_is_closed_to_other_users(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "new" / "data"
    if exists:
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    service = Service(settings_for(folder), BackgroundWork(composed()))
    service.open()
    service.close()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_data_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="check ASSAY_DATA_DIR and who owns it"):
        Service(settings_for(tmp_path / "file" / "data"), BackgroundWork(composed())).open()


def test_a_lock_left_by_a_dead_process_binds_nobody(tmp_path: Path) -> None:
    (tmp_path / "assay.lock").write_text('{"pid": 1, "host": "h", "since": "then"}')
    lock = DataLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_service_keeps_the_cases_from_being_removed(tmp_path: Path) -> None:
    service, removal = (
        Service(settings_for(tmp_path), BackgroundWork(composed())),
        DataLock(tmp_path, CORPUS_LOCK),
    )
    service.open()
    with pytest.raises(InfrastructureError, match="another Assay service"):
        removal.acquire()
    service.close()
    removal.acquire()
    with pytest.raises(InfrastructureError, match="another `assay corpus prune`"):
        service.open()
    removal.release()


def test_what_was_opened_is_closed_when_opening_fails(tmp_path: Path) -> None:
    def broken(*_: object) -> ServiceParts:
        raise InfrastructureError("no git on this machine")

    for _ in range(2):
        with pytest.raises(InfrastructureError, match="no git"):
            Service(settings_for(tmp_path), BackgroundWork(broken)).open()
    service = Service(settings_for(tmp_path), BackgroundWork(composed()))
    service.open()
    service.close()
