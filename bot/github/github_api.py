"""The API of one GitHub or GitHub Enterprise Server under one identity; shared by the sink and the reader."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

import structlog

from bot.errors import RefusalError
from bot.github.client import Authenticator, Client, TransportProtocol
from bot.github.identity import (
    READER,
    AppIdentity,
    Credentials,
    Identity,
    TokenIdentity,
    TokenScope,
    app_auth,
)
from bot.github.limits import TIMEOUT_S
from bot.github.rate_limiter import RateLimiter
from bot.github.transport import PUBLIC_API, Transport
from bot.loop import Loop
from bot.store.database import now

PRUNE_INTERVAL_S = 3600.0  # seconds

log = structlog.get_logger(__name__)


class GitHubApi:
    """A server's API under one identity. Thread-safe.

    rate_limiter  None for no limits and no cache: for single commands, not for a service
    """

    def __init__(
        self,
        credentials: Credentials,
        api_url: str = PUBLIC_API,
        *,
        rate_limiter: RateLimiter | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: TransportProtocol | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.url = api_url.rstrip("/")
        self.clock = clock
        self.rate_limiter = rate_limiter
        self._transport = transport or Transport(api_url, timeout_s)
        self._app: AppIdentity | None = None
        if credentials.token:
            self.identity: Identity = TokenIdentity(credentials.token, self._connect)
        else:
            self.identity = self._app = AppIdentity(app_auth(credentials), self._connect, clock)

    @property
    def is_app(self) -> bool:
        """Whether the identity is an App."""
        return self.identity.is_app

    @property
    def app(self) -> AppIdentity:
        """The App. Raises RefusalError for a token."""
        if self._app is None:
            raise RefusalError(
                "a token belongs to no App, which alone has installations and deliveries; "
                "set ASSAY_GITHUB_APP_ID and ASSAY_GITHUB_PRIVATE_KEY_FILE"
            )
        return self._app

    def client(self, target: str, scope: TokenScope) -> Client:
        """A client that may do `scope` for a repository."""
        return self.identity.client(target, scope)

    def git_token(self, target: str) -> str | None:
        """A token to fetch with; None without access, which public repositories do not need."""
        try:
            return self.identity.token(target, READER)
        except RefusalError as error:
            log.info("fetched without a token", target=target, reason=str(error))
            return None

    def close(self) -> None:
        """Revokes tokens and closes connections."""
        self.identity.close()
        self._transport.close()

    def _connect(self, authenticator: Authenticator) -> Client:
        return Client(self._transport, authenticator, self.rate_limiter, self.clock)


class CacheCleaner(Loop):
    """Prunes old rate usage hourly; revokes all tokens when the service stops."""

    def __init__(self, github_api: GitHubApi) -> None:
        super().__init__("github", PRUNE_INTERVAL_S)
        self._github_api = github_api

    def run_once(self, _stop: threading.Event | None = None, /) -> bool:
        """Deletes old rows once."""
        if self._github_api.rate_limiter is not None:
            self._github_api.rate_limiter.prune()
        return False

    def run_forever(self, stop: threading.Event) -> None:
        """Runs until `stop` is set, then closes the API."""
        super().run_forever(stop)
        self._github_api.close()
