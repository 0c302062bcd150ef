"""The web service as one FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bot import pages
from bot.background import BackgroundWork, Wiring
from bot.errors import InfrastructureError
from bot.page_contents import make_page as make_page_here
from bot.runners import exchange_routes
from bot.runners.exchange import Exchange
from bot.runners.github_actions import exchange_folder
from bot.service import Service
from bot.settings import Settings
from bot.webhooks import router

log = structlog.get_logger(__name__)


def create_app(settings: Settings, services: Wiring) -> FastAPI:
    """The application, all of it in this process; its lifespan opens and closes the service."""
    return build(Service(settings, BackgroundWork(services)))


def build(service: Service, make_page: pages.PageMaker = make_page_here) -> FastAPI:
    """The application in front of a service, which may be open already; `make_page` renders its pages."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.open)
        assert service.writer is not None
        app.state.webhook_context = router.WebhookContext(
            secrets=service.settings.webhook_secrets,
            max_body_bytes=service.settings.max_body_bytes,
            writer=service.writer,
            metrics=service.metrics,
        )
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(title="Assay", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    app.include_router(router.router())
    app.include_router(pages.router(service, make_page))
    if service.settings.runner_key is not None:
        exchange = Exchange(exchange_folder(service.settings.data_dir))
        app.include_router(
            exchange_routes.router(exchange, service.settings.runner_key.get_secret_value().encode())
        )
    _add_probes(app, service)
    app.add_exception_handler(InfrastructureError, _unavailable)
    app.add_exception_handler(Exception, _internal_error)
    return app


async def _unavailable(_request: Request, error: Exception) -> Response:
    """The response if the database does not work; details are in the log and in /readyz."""
    log.error("request.unavailable", reason=str(error))
    return PlainTextResponse(
        "Assay cannot read its database at the moment. Its log and /readyz give the reason.\n", 503
    )


async def _internal_error(_request: Request, _error: Exception) -> Response:
    """The response for a bug of Assay or a damaged row; the server logs the traceback."""
    return PlainTextResponse("Assay could not make this page. Its log gives the reason.\n", 500)


def _add_probes(app: FastAPI, service: Service) -> None:
    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    def readyz() -> JSONResponse:
        problems = service.problems()
        status = "unready" if problems else "ready"
        return JSONResponse({"status": status, "problems": problems}, 503 if problems else 200)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
