"""Web pages: watched repositories, one repository, the report of a campaign.

Shown if `ASSAY_PUBLIC_URL` is set, for public repositories only, as there is no login; `assay status` shows
all to the operator. Pages load and run nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response

from bot.reports.templates import render
from bot.service import Service
from bot.settings import Settings, web_url
from bot.store import Database, Session, now, outbox, overview
from bot.store.models import BugState, Campaign, Target

#: What the page may do; it says the same of itself.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: What GitHub leads back with after an App was registered; anything else is not repeated.
_REGISTRATION_CODE = re.compile(r"[A-Za-z0-9]{1,100}")
MAX_BUGS = 100  # ours: what fits a page; `assay bugs` lists all
#: Bugs that somebody is concerned with come first.
_STATE_ORDER = [
    BugState.REPORTED,
    BugState.HELD,
    BugState.FIXED,
    BugState.VERIFIED,
    BugState.NEW,
    BugState.CLOSED,
]
#: What findings are called on pages.
CLASSIFICATION_LABELS = {
    "regression": "new",
    "already_broken": "broken before",
    "support_lost": "no longer supported",
    "fixed": "fixed",
    "flaky": "did not repeat",
    "flaky_program": "not the same twice",
    "infrastructure": "the machine's doing",
    "inconclusive": "not judged",
}
_PAGES_DISABLED = """Assay is running. Its pages are switched off.

Set ASSAY_PUBLIC_URL to the address at which people reach this service, and start it again: pages and
reports of repositories that everybody may read are then shown. On this machine, `assay status` tells the
same of all.
"""


def report_file(data_dir: Path, campaign: int) -> Path:
    """The page of a campaign; it may not exist yet."""
    return data_dir / "artifacts" / str(campaign) / "report.html"


def router(service: Service) -> APIRouter:
    """The routes of pages."""
    routes = APIRouter()
    settings = service.settings

    def shown() -> Database | None:
        """The database, where there is one to be shown."""
        return service.database if settings.public_url else None

    @routes.get("/")
    def index(code: str = "") -> Response:
        database = shown()
        code = code if _REGISTRATION_CODE.fullmatch(code) else ""
        if database is None:
            fetch = f"\nThe GitHub App is registered. Next: assay manifest --code {code}\n" if code else ""
            return PlainTextResponse(_PAGES_DISABLED + fetch, headers=_HEADERS)
        with database.reading() as session:
            told = {
                "rows": overview.watched(session, public=True),
                "kill_switches": [
                    one for one in outbox.kill_switches(session) if one.name == outbox.ALL_TARGETS
                ],
                "problems": service.problems(),
                "code": code,
                "names": CLASSIFICATION_LABELS,
            }
            return HTMLResponse(render("pages/index.html.j2", **told), headers=_HEADERS)

    @routes.get("/repositories/{owner}/{name}")
    def repository(owner: str, name: str) -> Response:
        database = shown()
        if database is not None:
            with database.reading() as session:
                seen = overview.of_target(session, f"{owner}/{name}", now())
                if seen is not None and not seen.watched.target.private:
                    return HTMLResponse(_page(settings, seen), headers=_HEADERS)
        return _not_found("repository")

    @routes.get("/campaigns/{campaign}")
    def report(campaign: int) -> Response:
        path = report_file(settings.data_dir, campaign)
        database = shown()
        if database is None or not path.is_file():
            return _not_found("report")
        with database.reading() as session:
            public = _is_public(session, campaign)
        if not public:
            return _not_found("report")
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=_HEADERS)

    return routes


def _page(settings: Settings, seen: overview.Overview) -> str:
    ended = [one.campaign.id for one in seen.ended]
    return render(
        "pages/repository.html.j2",
        o=seen,
        bugs=sorted(seen.bugs, key=lambda bug: _STATE_ORDER.index(BugState(bug.state))),
        web=web_url(settings.github_api_url),
        reports={number for number in ended if report_file(settings.data_dir, number).is_file()},
        limit=MAX_BUGS,
        names=CLASSIFICATION_LABELS,
    )


def _not_found(what: str) -> Response:
    """The same response for what is missing and what may not be shown."""
    return PlainTextResponse(f"There is no such {what} here.\n", 404, headers=_HEADERS)


def _is_public(session: Session, campaign: int) -> bool:
    """Whether the campaign's repository is public, as far as known."""
    row = session.get(Campaign, campaign)
    target = session.get(Target, row.target) if row is not None else None
    return target is not None and not target.private
