"""Reading a request's body without trusting its length, its pace or its number."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from bot.errors import DeliveryError

#: GitHub gives up on a delivery after 10 s (Enterprise Server 30 s), by its documentation.
READ_TIMEOUT_S = 30.0
#: A body may take so many seconds, and one more for each MIN_RATE bytes it announces.
BASE_TIMEOUT_S, MIN_RATE = 5.0, 1024 * 1024
#: Bytes of a body that count against no budget: most deliveries are below 30 kB.
SMALL_BYTES = 128 * 1024
#: Bytes of all larger bodies that are being read, before their senders are known: five of the largest.
MAX_IN_FLIGHT_BYTES = 128 * 1024 * 1024


@dataclass
class BodyBudget:
    """The memory of bodies that are being read; of one event loop. Small bodies never wait for large ones."""

    free: int = MAX_IN_FLIGHT_BYTES

    async def read(self, request: Request, limit: int) -> bytes:
        """The body, at most `limit` bytes.

        Raises DeliveryError: 413 above the limit, as soon as the length announced or the bytes received
        say so; 400 where the length is no number or the sender went away; 408 where the sender is too
        slow; 503 where other large bodies take all the memory there is for them.
        """
        announced = _announced_length(request, limit)
        timeout_s = min(READ_TIMEOUT_S, BASE_TIMEOUT_S + (announced or 0) / MIN_RATE)
        body = bytearray()
        taken = 0
        try:
            async with asyncio.timeout(timeout_s):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
                    more = max(0, len(body) - SMALL_BYTES) - taken
                    if more > self.free:
                        raise DeliveryError(
                            503, "too many large deliveries at once; redeliver this one later"
                        )
                    taken, self.free = taken + more, self.free - more
        except ClientDisconnect:
            raise DeliveryError(400, "the connection was closed before the body was complete") from None
        except TimeoutError:
            raise DeliveryError(408, f"the body took longer than {timeout_s:.0f} s") from None
        finally:
            self.free += taken
        return bytes(body)


def _announced_length(request: Request, limit: int) -> int | None:
    announced = request.headers.get("content-length")
    if announced is None:
        return None
    if not (announced.isascii() and announced.isdigit()):
        raise DeliveryError(400, "Content-Length is not a number")
    if len(announced) > 20 or int(announced) > limit:
        raise _too_large(limit)
    return int(announced)


def _too_large(limit: int) -> DeliveryError:
    return DeliveryError(413, f"the body is larger than {limit} bytes; GitHub sends no such deliveries")
