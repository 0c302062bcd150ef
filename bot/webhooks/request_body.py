"""Reading a request's body without trusting its length."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from bot.errors import DeliveryError

#: GitHub gives up on a delivery after 10 s (Enterprise Server 30 s), its documentation says; a body
#: still coming in after that is nobody's.
READ_TIMEOUT_S = 30.0


async def read_body(request: Request, limit: int) -> bytes:
    """The body, at most `limit` bytes.

    Raises DeliveryError: 413 above the limit, as soon as the length announced or the bytes received
    say so; 400 where the length is no number or the sender went away; 408 where it dawdles.
    """
    announced = request.headers.get("content-length")
    if announced is not None:
        if not (announced.isascii() and announced.isdigit()):
            raise DeliveryError(400, "Content-Length is not a number")
        if int(announced) > limit:
            raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except ClientDisconnect:
        raise DeliveryError(400, "the connection was closed before the body was complete") from None
    except TimeoutError:
        raise DeliveryError(408, f"the body took longer than {READ_TIMEOUT_S:.0f} s") from None
    return bytes(body)


def _too_large(limit: int) -> DeliveryError:
    return DeliveryError(413, f"the body is larger than {limit} bytes; GitHub sends no such deliveries")
