"""POST /webhooks/github on the real application with a real database: what is taken, what refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from bot.app import create_app
from bot.background import ServiceParts
from bot.settings import Settings
from bot.store import Database
from bot.store.models import Delivery
from bot.webhooks.signature import sign

SECRET = "It's a Secret to Everybody"
Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]
BODY = b'{"zen": "Keep it logically awesome.", "hook_id": 1}'


def nothing(*_: object) -> None:
    """A handler for deliveries that ask for nothing."""


def app_for(folder: Path, **settings: Any) -> FastAPI:
    given: dict[str, Any] = {"data_dir": folder, "webhook_secret": SECRET} | settings
    return create_app(Settings(**given), services=lambda *_: ServiceParts(handle=nothing))


@pytest.fixture
def client(tmp_path: Path, serving: Serving) -> Iterator[httpx.Client]:
    with serving(app_for(tmp_path)) as client:
        yield client


def headers(body: bytes, **changes: str | None) -> dict[str, str]:
    known = {
        "Content-Type": "application/json",
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "X-GitHub-Event": "ping",
        "X-Hub-Signature-256": sign(SECRET.encode(), body),
    }
    changed = known | {name.replace("_", "-"): value for name, value in changes.items()}
    return {name: value for name, value in changed.items() if value is not None}


def rows(folder: Path) -> list[tuple[str, str, bytes]]:
    database = Database(f"sqlite:///{folder}/assay.db")
    with database.reading() as session:
        found = session.execute(select(Delivery.id, Delivery.event, Delivery.payload)).all()
    database.close()
    return [(row.id, row.event, row.payload) for row in found]


def post(client: httpx.Client, body: bytes = BODY, **changes: str | None) -> tuple[int, dict[str, Any]]:
    answer = client.post("/webhooks/github", content=body, headers=headers(body, **changes))
    return answer.status_code, answer.json()


def test_a_signed_delivery_is_stored_and_acknowledged(client: httpx.Client, tmp_path: Path) -> None:
    delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    assert post(client) == (202, {"delivery": delivery, "stored": True})
    assert rows(tmp_path) == [(delivery, "ping", BODY)]


def test_a_repeated_delivery_changes_nothing(client: httpx.Client, tmp_path: Path) -> None:
    post(client)
    before = rows(tmp_path)
    other = b'{"hook_id": 2}'
    assert post(client, other)[1]["stored"] is False
    assert rows(tmp_path) == before


@pytest.mark.parametrize(
    "signature",
    [None, "", "sha256=" + "0" * 64, "sha1=" + "0" * 40, sign(b"another", BODY), sign(SECRET.encode(), b"x")],
)
def test_a_wrong_or_missing_signature_is_refused(
    client: httpx.Client, tmp_path: Path, signature: str | None
) -> None:
    status, answer = post(client, X_Hub_Signature_256=signature)
    assert status == 401
    assert "X-Hub-Signature-256" in answer["error"]
    assert rows(tmp_path) == []


def test_strangers_learn_nothing_but_that(client: httpx.Client) -> None:
    status, _ = post(client, b"no json", X_Hub_Signature_256="sha256=" + "0" * 64, X_GitHub_Event=None)
    assert status == 401


def test_the_previous_secret_still_counts(tmp_path: Path, serving: Serving) -> None:
    with serving(app_for(tmp_path, webhook_secret="new", webhook_secret_previous=SECRET)) as client:
        assert post(client)[0] == 202


def test_without_a_secret_nothing_can_be_checked(tmp_path: Path, serving: Serving) -> None:
    with serving(app_for(tmp_path, webhook_secret=None)) as client:
        status, answer = post(client)
    assert status == 503
    assert "set ASSAY_WEBHOOK_SECRET" in answer["error"]
    assert rows(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"X_GitHub_Delivery": None}, "X-GitHub-Delivery is missing"),
        ({"X_GitHub_Event": None}, "X-GitHub-Event is missing"),
        ({"X_GitHub_Delivery": "a b"}, "not a GUID"),
        ({"X_GitHub_Delivery": "a" * 65}, "not a GUID"),
        ({"X_GitHub_Event": "../push"}, "not an event's name"),
    ],
)
def test_missing_or_odd_headers(
    client: httpx.Client, tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    status, answer = post(client, **changes)
    assert status == 400
    assert part in answer["error"]
    assert rows(tmp_path) == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"push"', b'{"a": NaN}', b"\xff{}", b"[" * 100_000, b'{"a": 1} {}']
)
def test_a_body_that_is_no_json_object(client: httpx.Client, tmp_path: Path, body: bytes) -> None:
    status, answer = post(client, body)
    assert status == 400
    assert "JSON" in answer["error"]
    assert rows(tmp_path) == []


def test_forms_are_refused_with_advice(client: httpx.Client, tmp_path: Path) -> None:
    status, answer = post(client, b"payload=%7B%7D", Content_Type="application/x-www-form-urlencoded")
    assert status == 415
    assert "application/json" in answer["error"]
    assert rows(tmp_path) == []


def test_the_body_is_bounded(tmp_path: Path, serving: Serving) -> None:
    with serving(app_for(tmp_path, max_body_bytes=2048)) as client:
        fits = json.dumps({"hook_id": 1, "zen": ""}).encode()
        fits = fits.replace(b'""', b'"' + b"x" * (2048 - len(fits)) + b'"')
        assert len(fits) == 2048
        assert post(client, fits)[0] == 202
        longer = fits + b" "
        assert post(client, longer, X_GitHub_Delivery="second")[0] == 413
        # no length is announced
        answer = client.post(
            "/webhooks/github", content=iter((longer[:1000], longer[1000:])), headers=headers(longer)
        )
        assert answer.status_code == 413
    assert len(rows(tmp_path)) == 1


def test_a_large_body_is_taken(client: httpx.Client, tmp_path: Path) -> None:
    body = json.dumps({"hook_id": 1, "zen": "x" * 3_000_000}).encode()
    assert post(client, body)[0] == 202
    assert rows(tmp_path)[0][2] == body
    assert post(client, body[:-1], X_GitHub_Delivery="second")[0] == 400


def test_unknown_events_are_taken(client: httpx.Client, tmp_path: Path) -> None:
    assert post(client, X_GitHub_Event="star")[0] == 202
    assert rows(tmp_path)[0][1] == "star"


def test_only_post(client: httpx.Client) -> None:
    assert client.get("/webhooks/github").status_code == 405
