"""Pages made in another process: equal to those made here, and limited in time and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from bot import page_process
from bot.errors import InfrastructureError, InternalError
from bot.page_contents import PageRequest, make_page
from bot.page_process import PageProcess
from bot.processes import BACKGROUND_NICENESS
from bot.reports import templates
from bot.settings import Settings
from bot.store import Database
from bot.store.models import Target

INDEX: PageRequest = {"code": "", "problems": {"publisher": "a <bug>"}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"data_dir": tmp_path, "webhook_secret": "s", "public_url": "https://a.b"})


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = Database(settings.database_url)
    database.migrate()
    with database.transaction() as session:
        session.add(Target(name="octo/open", private=False))
    yield database
    database.close()


def niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


@pytest.fixture
def pages() -> Iterator[PageProcess]:
    made = PageProcess()
    yield made
    made.close()


def test_pages_are_those_that_this_process_would_make(
    settings: Settings, database: Database, pages: PageProcess
) -> None:
    requests: list[PageRequest] = [INDEX, {"repository": "octo/open"}]
    for request in requests:
        page = pages.make(settings, database, request)
        assert page == make_page(settings, database, request)
        assert page is not None
        assert "octo/open" in page
    assert pages._process is not None
    assert niceness(pages._process.pid) == min(19, niceness(0) + BACKGROUND_NICENESS)
    assert pages.make(settings, database, {"repository": "octo/none"}) is None


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        ("lambda *_: 'x' * (1 << 31)", "more than 1024 MiB"),
        ("lambda *_: 'x' * (p.MAX_PAGE + 1)", "characters, more than"),
        ("lambda *_: __import__('time').sleep(600)", "longer than"),
        ("lambda *_: __import__('os')._exit(1)", "ended"),
    ],
)
def test_a_page_above_a_limit_is_an_error_and_the_next_one_is_made(
    settings: Settings,
    database: Database,
    pages: PageProcess,
    monkeypatch: pytest.MonkeyPatch,
    hostile: str,
    reason: str,
) -> None:
    program = f"import bot.page_process as p; p.make_page = {hostile}; p.main()"
    with monkeypatch.context() as patch:
        patch.setattr(page_process, "PROGRAM", ("-P", "-c", program))
        if reason == "longer than":
            patch.setattr(page_process, "TIMEOUT_S", 0.1)
        with pytest.raises(InfrastructureError, match=reason):
            pages.make(settings, database, INDEX)
        pages.close()
    assert pages.make(settings, database, {"repository": "octo/none"}) is None


@pytest.mark.parametrize("limit", ["MAX_CHARACTERS", "MAX_CPU_S"])
def test_a_text_above_a_limit_is_an_error_of_its_item(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    template = jinja2.Template("{% for _ in range(1000) %}{{ text }}{% endfor %}")
    values = {"text": "x" * 100}
    assert len(templates.render_within_limits(template, values)) == 100_000
    monkeypatch.setattr(templates, limit, 0)
    with pytest.raises(InternalError):
        templates.render_within_limits(template, values)
