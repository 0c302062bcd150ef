"""Web pages: watched repositories, one repository, the report of a campaign.

Enabled by `ASSAY_PUBLIC_URL`. There is no login, so only public repositories are shown; `assay status` shows
all. Pages load no resources and run no scripts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from bot.artifacts import Artifacts
from bot.page_contents import PageRequest, make_page
from bot.service import Service
from bot.settings import Settings
from bot.store import Database, Session
from bot.store.models import Campaign, Target

#: The pages' content security policy, also in their own HTML.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: The code in GitHub's redirect after the registration of an App; other text is not echoed.
_REGISTRATION_CODE = re.compile(r"[A-Za-z0-9]{1,100}")
_PAGES_DISABLED = """Assay is running. Its pages are disabled.

Set ASSAY_PUBLIC_URL to the public address of this service and restart it to serve pages and reports of public
repositories. On this machine, `assay status` shows all repositories.
"""

#: Page requests that may wait while one is rendered; others get 503.
MAX_WAITING = 20


#: Makes a page; None if there is none. Raises InfrastructureError: the database fails, or a limit is hit.
PageMaker = Callable[[Settings, Database, PageRequest], str | None]


class PageQueue:
    """Makes one page at a time, so that pages take one core of webhooks and probes at most."""

    def __init__(self) -> None:
        self._slot = asyncio.Semaphore(1)
        self._waiting = 0

    async def render(self, build: Callable[[], Response]) -> Response:
        """Calls `build` in a worker thread in its turn; 503 if too many requests wait."""
        if self._waiting >= MAX_WAITING:
            return PlainTextResponse(
                "Too many requests for pages.\n", 503, headers=_HEADERS | {"Retry-After": "2"}
            )
        self._waiting += 1
        try:
            async with self._slot:
                return await run_in_threadpool(build)
        finally:
            self._waiting -= 1


def router(service: Service, make: PageMaker = make_page) -> APIRouter:
    """The routes of pages, which `make` makes."""
    routes = APIRouter()
    settings = service.settings
    artifacts = Artifacts(settings.artifacts_url, settings.data_dir)
    queue = PageQueue()

    def shown() -> Database | None:
        """The database, None if pages are disabled."""
        return service.database if settings.public_url else None

    @routes.get("/")
    async def index(code: str = "") -> Response:
        return await queue.render(lambda: render_index(code))

    def render_index(code: str) -> Response:
        database = shown()
        code = code if _REGISTRATION_CODE.fullmatch(code) else ""
        if database is None:
            fetch = f"\nThe GitHub App is registered. Next: assay manifest --code {code}\n" if code else ""
            return PlainTextResponse(_PAGES_DISABLED + fetch, headers=_HEADERS)
        page = make(settings, database, {"code": code, "problems": service.problems()})
        return HTMLResponse(page, headers=_HEADERS)

    @routes.get("/repositories/{owner}/{name}")
    async def repository(owner: str, name: str) -> Response:
        return await queue.render(lambda: render_repository(owner, name))

    def render_repository(owner: str, name: str) -> Response:
        database = shown()
        page = make(settings, database, {"repository": f"{owner}/{name}"}) if database is not None else None
        return _not_found("repository") if page is None else HTMLResponse(page, headers=_HEADERS)

    @routes.get("/campaigns/{campaign}")
    async def report(campaign: int) -> Response:
        return await queue.render(lambda: find_report(campaign))

    def find_report(campaign: int) -> Response:
        database = shown()
        if database is None:
            return _not_found("report")
        with database.reading() as session:
            public = _is_public(session, campaign)
        if not public:
            return _not_found("report")
        page = artifacts.page(campaign)
        return _not_found("report") if page is None else HTMLResponse(page, headers=_HEADERS)

    return routes


def _not_found(what: str) -> Response:
    """The same response for missing and for private pages."""
    return PlainTextResponse(f"No such {what}.\n", 404, headers=_HEADERS)


def _is_public(session: Session, campaign: int) -> bool:
    """Whether the campaign's repository is public, as of GitHub's last event."""
    row = session.get(Campaign, campaign)
    target = session.get(Target, row.target) if row is not None else None
    return target is not None and not target.private
