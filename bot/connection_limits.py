"""Limits of connections before authentication: their number, and the time and size of a request's head.

Without them, a thousand half-open connections block deliveries. A request's body is limited in
`bot.webhooks.request_body`.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Open connections of a service. Beyond them, the one that has waited longest for a request is closed.
MAX_CONNECTIONS = 2048
#: Seconds and bytes of a request's head; GitHub sends its head, 1 kB, at once.
HEAD_TIMEOUT_S, MAX_HEAD_BYTES = 10.0, 64 * 1024


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with the limits above, which uvicorn lacks."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _idle_since: float | None = None  # on the monotonic clock; None while a request is answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room for the connection and starts the timeout of its first head."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > MAX_CONNECTIONS:
            self._close_longest_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timeout."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Passes data on, unless the head is too long."""
        if self._head_timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > MAX_HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Starts the timeout of the head on a reused connection."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Cancels the timeout: the application handles the request from here on."""
        self._stop_timer()
        self._idle_since = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Marks the connection as idle."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def _await_head(self) -> None:
        self._idle_since, self._head_bytes = time.monotonic(), 0
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_longest_idle(self) -> None:
        """Closes the connection that has waited longest for a request; this one if all others are busy."""
        waiting = [
            one for one in cast("set[LimitedProtocol]", self.connections) if one._idle_since is not None
        ]
        longest = min(waiting, key=lambda one: one._idle_since or 0.0, default=self)
        self.connections.discard(longest)
        longest.transport.abort()


def raise_file_limit() -> None:
    """Raises the limit on open files, so that connections leave enough of them to the database."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MAX_CONNECTIONS if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
