"""The page of a campaign's report, for whoever follows a check run's "Details".

It is there where `ASSAY_PUBLIC_URL` is set, and for repositories that everybody may read: it asks for no
login, so what only some may read is not shown at all. The page itself loads nothing and runs nothing.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, PlainTextResponse, Response

from bot.service import Service
from bot.settings import Settings
from bot.store import Database
from bot.store.models import Campaign, Target

#: What the page may do; it says the same of itself.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def address(settings: Settings, campaign: int) -> str:
    """Where the report of a campaign can be read; "" where the service has no public address."""
    return f"{settings.public_url}/campaigns/{campaign}" if settings.public_url else ""


def report_file(data_dir: Path, campaign: int) -> Path:
    """The page of a campaign, once it is written."""
    return data_dir / "artifacts" / str(campaign) / "report.html"


def router(service: Service) -> APIRouter:
    """The routes of pages."""
    routes = APIRouter()

    @routes.get("/campaigns/{campaign}")
    def report(campaign: int) -> Response:
        path = report_file(service.settings.data_dir, campaign)
        database = service.database
        shown = service.settings.public_url and database is not None and _is_public(database, campaign)
        if not shown or not path.is_file():
            return PlainTextResponse("There is no such report here.\n", 404)
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=_HEADERS)

    return routes


def _is_public(database: Database, campaign: int) -> bool:
    """Whether everybody may read the campaign's repository, as far as GitHub has told us."""
    with database.reading() as session:
        row = session.get(Campaign, campaign)
        target = session.get(Target, row.target) if row is not None else None
        return target is not None and not target.private
