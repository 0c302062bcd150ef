"""`POST /webhooks/github`: size and signature, store, acknowledge, wake the reader. Nothing else."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import pydantic_core
import structlog
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from bot.errors import DeliveryError, InfrastructureError
from bot.metrics import Metrics
from bot.webhooks import events, signature
from bot.webhooks.inbox_writer import InboxWriter
from bot.webhooks.request_body import BodyBudget

#: Bodies above this are parsed in another thread; parsing so much takes about a millisecond.
INLINE_BYTES = 128 * 1024

_DELIVERY = re.compile(r"[0-9A-Za-z-]{1,64}")  # a GUID at GitHub; our column holds 64
_EVENT = re.compile(r"[a-z][a-z0-9_]{0,63}")  # projects_v2_item has a digit

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class WebhookContext:
    """What the endpoint needs: the secrets in force, the bound, and where deliveries go."""

    secrets: tuple[bytes, ...]
    max_body_bytes: int
    writer: InboxWriter
    metrics: Metrics
    bodies: BodyBudget = field(default_factory=BodyBudget)


@dataclass(frozen=True)
class _VerifiedDelivery:
    delivery: str
    event: str
    body: bytes


def router() -> APIRouter:
    """The route; it reads its WebhookContext from `app.state.webhook_context`."""
    routes = APIRouter()
    # A plain route: FastAPI's own solve dependencies and validate, which nothing here needs.
    routes.add_route("/webhooks/github", receive, methods=["POST"])
    return routes


async def receive(request: Request) -> JSONResponse:
    """Answers one delivery."""
    started = time.perf_counter()
    webhook_context: WebhookContext = request.app.state.webhook_context
    event = request.headers.get("x-github-event", "")
    try:
        checked = await _check(request, webhook_context)
        with structlog.contextvars.bound_contextvars(delivery_id=checked.delivery):
            stored = await webhook_context.writer.store(checked.delivery, checked.event, checked.body)
            log.debug("delivery", event_name=checked.event, stored=stored)
        response = JSONResponse({"delivery": checked.delivery, "stored": stored}, 202)
        result = "stored" if stored else "repeated"
    except DeliveryError as error:
        response, result = _refuse(error.status, str(error)), f"refused_{error.status}"
        log.warning("delivery refused", status=error.status, reason=str(error))
    except InfrastructureError as error:
        # GitHub marks the delivery as failed, and it can be delivered again.
        response, result = _refuse(503, "the delivery could not be stored; redeliver it later"), "failed"
        log.warning("delivery not stored", reason=str(error))
    # A stranger could invent events without end: they share one label.
    label = event if event in events.names() and not result.startswith("refused") else "other"
    webhook_context.metrics.deliveries.labels(event=label, result=result).inc()
    webhook_context.metrics.acknowledgement.observe(time.perf_counter() - started)
    return response


async def _check(request: Request, webhook_context: WebhookContext) -> _VerifiedDelivery:
    """The delivery, once it is shown to be one. Unauthenticated callers get a generic 401."""
    if not webhook_context.secrets:
        raise DeliveryError(503, "no webhook secret is configured; set ASSAY_WEBHOOK_SECRET and start again")
    signed = request.headers.get(signature.HEADER)
    if not signature.is_well_formed(signed):
        raise _unauthorized()
    body = await webhook_context.bodies.read(request, webhook_context.max_body_bytes)
    if not signature.verify(webhook_context.secrets, body, signed):
        raise _unauthorized()
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise DeliveryError(
            415, "the webhook sends forms; choose the content type application/json in the webhook's settings"
        )
    delivery = _header(request, "X-GitHub-Delivery", _DELIVERY, "a GUID")
    event = _header(request, "X-GitHub-Event", _EVENT, "an event's name, such as push")
    if len(body) > INLINE_BYTES:
        await run_in_threadpool(_check_json, body)
    else:
        _check_json(body)
    return _VerifiedDelivery(delivery, event, body)


def _check_json(body: bytes) -> None:
    try:
        value = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise DeliveryError(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DeliveryError(400, "the body is JSON, but not an object")


def _header(request: Request, name: str, form: re.Pattern[str], what: str) -> str:
    value = request.headers.get(name)
    if value is None:
        raise DeliveryError(400, f"the header {name} is missing")
    if not form.fullmatch(value):
        raise DeliveryError(400, f"the header {name} is not {what}")
    return value


def _unauthorized() -> DeliveryError:
    return DeliveryError(401, f"{signature.HEADER} is missing or does not match the body and our secret")


def _refuse(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
