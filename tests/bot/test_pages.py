"""The pages: for everybody, of what everybody may read, where the service has an address."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from bot import pages
from bot.app import build
from bot.artifacts import PAGE, Artifacts
from bot.background import BackgroundWork, ServiceParts
from bot.service import Service
from bot.settings import Settings, report_url
from bot.store import audit, bugs, outbox
from bot.store.models import Bug, Campaign, CampaignState, Proposal, Target

Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]
AT = datetime(2026, 1, 1, tzinfo=UTC)


def service(folder: Path, public_url: str | None) -> Service:
    settings = Settings(data_dir=folder, public_url=public_url)
    parts = ServiceParts(handle=lambda _session, _intent: None)
    return Service(settings, BackgroundWork(lambda _settings, _database: parts))


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
        path = Artifacts("", made.settings.data_dir).folder(number) / PAGE
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
    assert report_url(made.settings, 1) == "https://assay.example/campaigns/1"


def test_without_an_address_there_is_no_page(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, None)
    with serving(build(made)) as client:
        fill(made)
        assert client.get("/campaigns/1").status_code == 404
    assert report_url(made.settings, 1) == ""


def tell(made: Service, title: str = "wrong values", why: str = "already broken at base") -> None:
    """A campaign at work, one that has failed, a bug and what was left about it, in the open repository."""
    assert made.database is not None
    with made.database.transaction() as session:
        begun = session.get_one(Campaign, 1)
        begun.owner, begun.config = "somebody", {"reports": {"mode": "held"}}
        session.add(Campaign(target="octo/open", head="b" * 40, trigger="push", created_at=AT, updated_at=AT,
                             state=CampaignState.FAILED.value, reason="no such release"))  # fmt: skip
        bug = Bug(
            target="octo/open", signature="5" * 16, title=title, reason=why, first_seen=AT, last_seen=AT
        )
        session.add(bug)
        session.add(Proposal(target="octo/open", signature="5" * 16, effect="e", state="merged", number=31,
                             branch="b", path="tests/test_pad.py", test="test_pad_values",
                             writer="pytest-function", created_at=AT, updated_at=AT))  # fmt: skip
        session.flush()
        audit.record(session, "octo/open", "silent", bugs.audit_subject(bug), why, AT)
        audit.record(session, "octo/open", "sent", "effect:12", "check_run published", AT)


def test_the_index_lists_what_everybody_may_read(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, "https://assay.example")
    with serving(build(made)) as client:
        fill(made)
        tell(made)
        page = client.get("/").text
        assert "octo/open" in page
        assert "octo/closed" not in page
        assert "no such release" in page
        assert client.get("/repositories/octo/closed").status_code == 404
        assert client.get("/repositories/octo/nobody").status_code == 404


def test_the_page_of_a_repository_says_why_nothing_was_said(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, "https://assay.example")
    with serving(build(made)) as client:
        fill(made)
        tell(made)
        answer = client.get("/repositories/octo/open")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "check_run published" not in answer.text, "GitHub shows it"
        assert "reports: held" in answer.text
        for said in ("planning", "no such release", "wrong values", "already broken at base", "silent",
                     "test_pad_values", "octo/open/pull/31", "merged"):  # fmt: skip
            assert said in answer.text
        assert "Publishing is paused" not in answer.text
        assert made.database is not None
        with made.database.transaction() as session:
            outbox.enable_kill_switch(session, "octo/open", "wrong reports", AT)
            outbox.enable_kill_switch(session, "octo/closed", "not for you", AT)
        text = client.get("/repositories/octo/open").text
        assert "wrong reports" in text
        assert "not for you" not in text + client.get("/").text


def test_what_comes_from_outside_is_text_on_a_page(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, "https://assay.example")
    with serving(build(made)) as client:
        fill(made)
        tell(
            made,
            title="<script>alert(1)</script>",
            why="<b>written down</b>: file:///srv/assay/outbox/1.json",
        )
        page = client.get("/repositories/octo/open").text
        assert "<script>" not in page
        assert "<b>written" not in page
        assert "/srv/assay" not in page
        assert "<img" not in client.get("/", params={"code": "<img src=x>"}).text


@pytest.mark.parametrize("url", ["https://assay.example", None])
def test_a_registered_app_is_told_what_to_do_next(tmp_path: Path, serving: Serving, url: str | None) -> None:
    made = service(tmp_path, url)
    with serving(build(made)) as client:
        answer = client.get("/", params={"code": "a1b2c3"})
        assert answer.status_code == 200
        assert "assay manifest --code a1b2c3" in answer.text
        assert "assay manifest" not in client.get("/").text


def test_without_an_address_the_index_says_how_to_get_one(tmp_path: Path, serving: Serving) -> None:
    made = service(tmp_path, None)
    with serving(build(made)) as client:
        fill(made)
        page = client.get("/").text
        assert "ASSAY_PUBLIC_URL" in page
        assert "octo/open" not in page
        assert client.get("/repositories/octo/open").status_code == 404


def test_one_page_is_rendered_at_a_time_and_the_queue_is_bounded() -> None:
    """While a page is slow, the event loop answers at once, and requests beyond the queue get 503."""
    release, lock = threading.Event(), threading.Lock()
    running, most = 0, 0

    def slow() -> Response:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        release.wait(30)
        with lock:
            running -= 1
        return PlainTextResponse("page")

    async def load() -> list[int]:
        queue = pages.PageQueue()
        waiting = [asyncio.create_task(queue.render(slow)) for _ in range(pages.MAX_WAITING)]
        await asyncio.sleep(0.05)
        refused = await asyncio.wait_for(queue.render(slow), timeout=5)
        release.set()
        return [refused.status_code, *(one.status_code for one in await asyncio.gather(*waiting))]

    assert asyncio.run(load()) == [503, *([200] * pages.MAX_WAITING)]
    assert most == 1
