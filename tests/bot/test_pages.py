"""The page of a report: for everybody, of what everybody may read, where the service has an address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from fastapi import FastAPI

from bot import pages
from bot.app import build
from bot.service import Service, Services
from bot.settings import Settings
from bot.store.models import Campaign, Target

Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]
AT = datetime(2026, 1, 1, tzinfo=UTC)


def service(folder: Path, public_url: str | None) -> Service:
    settings = Settings(data_dir=folder, public_url=public_url)
    return Service(settings, lambda _settings, _database: Services(handle=lambda _session, _intent: None))


def fill(made: Service) -> None:
    """Campaign 1 of a public repository, 2 of a private one, 3 of one nobody knows; all have a report."""
    assert made.database is not None
    with made.database.transaction() as session:
        session.add(Target(name="octo/open", private=False))
        session.add(Target(name="octo/closed", private=True))
        for number, name in enumerate(("octo/open", "octo/closed", "octo/unknown"), 1):
            session.add(Campaign(id=number, target=name, head="a" * 40, trigger="push", created_at=AT,
                                 updated_at=AT))  # fmt: skip
    for number in (1, 2, 3):
        path = pages.report_file(made.settings.data_dir, number)
        path.parent.mkdir(parents=True)
        path.write_text(f"<title>Report {number}</title>")


def test_only_reports_of_public_repositories_are_shown(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, "https://assay.example/")
    with serving(build(made)) as client:
        fill(made)
        answers = {number: client.get(f"/campaigns/{number}") for number in (1, 2, 3, 4)}
        assert {number: answer.status_code for number, answer in answers.items()} == {
            1: 200, 2: 404, 3: 404, 4: 404
        }  # fmt: skip
        assert "Report 1" in answers[1].text
        assert answers[1].headers["content-security-policy"].startswith("default-src 'none'")
        assert client.get("/campaigns/..%2f1").status_code in (404, 422)
    assert pages.address(made.settings, 1) == "https://assay.example/campaigns/1"


def test_without_an_address_there_is_no_page(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, None)
    with serving(build(made)) as client:
        fill(made)
        assert client.get("/campaigns/1").status_code == 404
    assert pages.address(made.settings, 1) == ""
