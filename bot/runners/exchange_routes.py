"""The web requests of runners on other machines: each is signed, and nothing unsigned is kept.

    GET  /runners/ATTEMPT/bundle      the shard and its cases
    POST /runners/ATTEMPT/alive       renews the lease
    POST /runners/ATTEMPT/events      an upload of events; `last` in the query ends the attempt

Headers: `X-Assay-Number`, `X-Assay-Signature` (`bot.runners.exchange.sign`). Answers: 401 for a wrong
signature, 410 for an attempt that is over, 409 for an upload out of order, 413 for one that is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.errors import UsageError
from bot.runners.exchange import MAX_UPLOAD_BYTES, Exchange, WithdrawnError, is_signed

T = TypeVar("T")


def router(exchange: Exchange, key: bytes) -> APIRouter:
    """The routes; without a key every request is refused."""
    routes = APIRouter(prefix="/runners")

    @routes.get("/{attempt}/bundle")
    async def bundle(attempt: str, request: Request) -> Response:
        return await _answer(request, key, attempt, "bundle", lambda _n, _body: exchange.bundle(attempt))

    @routes.post("/{attempt}/alive")
    async def alive(attempt: str, request: Request) -> Response:
        return await _answer(request, key, attempt, "alive", lambda _n, _body: exchange.show_life(attempt))

    @routes.post("/{attempt}/events")
    async def events(attempt: str, request: Request) -> Response:
        last = "last" in request.query_params
        action = "last" if last else "events"

        def put(number: int, body: bytes) -> None:
            exchange.put(attempt, number, body, last=last)

        return await _answer(request, key, attempt, action, put)

    return routes


async def _answer(
    request: Request, key: bytes, attempt: str, action: str, work: Callable[[int, bytes], bytes | None]
) -> Response:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_UPLOAD_BYTES:
            return PlainTextResponse("too large\n", 413)
    number = request.headers.get("x-assay-number", "")
    signature = request.headers.get("x-assay-signature", "")
    if not (number.isascii() and number.isdigit() and len(number) < 12) or not is_signed(
        key, signature, attempt, action, int(number), bytes(body)
    ):
        return PlainTextResponse("the signature is not that of a runner\n", 401)
    try:
        found = await run_in_threadpool(work, int(number), bytes(body))
    except WithdrawnError as error:
        return PlainTextResponse(f"{error}\n", 410)
    except UsageError as error:
        return PlainTextResponse(f"{error}\n", 409)
    return Response(found, 200, media_type="application/octet-stream") if found else Response(status_code=204)
