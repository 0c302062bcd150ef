"""A client of one account: authenticates requests, obeys the rate limits, maps failures to our errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol, cast
from urllib.parse import urlencode

from requests.utils import parse_header_links

from bot.errors import InternalError
from bot.github.limits import PER_PAGE
from bot.github.rate_limiter import MAX_CACHED_BYTES, SEARCH, RateLimiter
from bot.github.requester import ApiRequester, Page
from bot.github.requests import Request
from bot.github.responses import (
    ApiResponse,
    NotFoundError,
    UnexpectedResponseError,
    expected_shape,
    make_error,
    make_throttled_error,
)

_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)")


class TransportProtocol(Protocol):
    """Sends requests: `bot.github.transport.Transport`."""

    def request(
        self,
        method: str,
        path: str,
        authorization: str,
        *,
        body: object = None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """The response, whatever its status."""
        ...

    def close(self) -> None:
        """Closes all connections."""
        ...


class Authenticator(Protocol):
    """Authenticates as one account."""

    @property
    def account(self) -> str:
        """The account whose limits count."""
        ...

    def authorization(self) -> str:
        """The header's value."""
        ...

    def refresh(self) -> bool:
        """Discards a rejected credential; False if there is no other."""
        ...


class Client:
    """Requests on behalf of one account. Thread-safe.

    rate_limiter  None for no limits and no cache
    """

    def __init__(
        self,
        transport: TransportProtocol,
        authenticator: Authenticator,
        rate_limiter: RateLimiter | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._transport, self._authenticator, self._rate_limiter, self._clock = (
            transport,
            authenticator,
            rate_limiter,
            clock,
        )

    def get(self, path: str, /, **parameters: Any) -> Any:
        """A resource that PyGithub has no method for.

        Raises NotFoundError, RefusalError, ThrottledError, InfrastructureError.
        """
        return self.read(path, parameters)["value"]

    def get_or_none(self, path: str, /, **parameters: Any) -> Any | None:
        """The resource, None if it does not exist."""
        try:
            return self.get(path, **parameters)
        except NotFoundError:
            return None

    def pages(self, path: str, /, key: str = "", **parameters: Any) -> Iterator[Any]:
        """The items of a list, fetched page by page; `key` is the field in which GitHub wraps them."""
        page = self.read(path, {"per_page": PER_PAGE, **parameters})
        while True:
            with expected_shape(path):
                items = page["value"][key] if key else page["value"]
            if not isinstance(items, list):
                raise UnexpectedResponseError(
                    f"GitHub answered {path} without a list of items; it is tried again later"
                )
            yield from items
            if not page["next"]:
                return
            page = self.read(page["next"], {})

    def send(self, request: Request, permission: str = "") -> ApiResponse:
        """Sends a request that changes something; `permission` is what it needs."""
        if self._rate_limiter is not None:
            self._rate_limiter.acquire_write(
                self._authenticator.account, creates_content=request.method == "POST"
            )
        answer = self._request_authenticated(request.method, request.path, request.body, None, {})
        self._check_limits(answer, self._authenticator.account)
        if answer.status >= 300:
            raise make_error(answer, _request_subject(request.path), permission, self._clock())
        return answer

    def api(self, permission: str = "", per_page: int = PER_PAGE) -> ApiRequester:
        """PyGithub's methods on behalf of this account; `permission` is what its writes need."""
        return ApiRequester(self, permission, per_page)

    def read(self, path: str, parameters: Mapping[str, Any]) -> Page:
        """The response to a GET, as the last one if it has not changed. Raises as `get` does."""
        account, search = self._authenticator.account, path.startswith("/search/")
        url = f"{account} {path}?{urlencode(sorted(parameters.items()))}"
        cached_response = self._before(account, url, search=search)
        headers = {"If-None-Match": cached_response[0]} if cached_response else {}
        answer = self._request_authenticated("GET", path, None, parameters, headers)
        self._check_limits(answer, account + SEARCH if search else account)
        if answer.status == 304 and cached_response:
            return cached_response[1]
        if answer.status >= 300:
            raise make_error(answer, _request_subject(path), "", self._clock())
        page_data: Page = {"value": answer.data, "next": _next_page(answer)}
        etag = answer.headers.get("etag", "")
        length = answer.headers.get("content-length", "")
        size = int(length) if length.isascii() and length.isdigit() else 0
        if self._rate_limiter is not None and etag and size <= MAX_CACHED_BYTES and not search:
            self._rate_limiter.store_response(url, etag, page_data)
        return page_data

    def _before(self, account: str, url: str, *, search: bool) -> tuple[str, Page] | None:
        if self._rate_limiter is None:
            return None
        if search:
            self._rate_limiter.acquire_search(account)
            return None
        self._rate_limiter.check_pause(account)
        return cast("tuple[str, Page] | None", self._rate_limiter.cached_response(url))

    def _request_authenticated(
        self,
        method: str,
        path: str,
        body: object,
        parameters: Mapping[str, Any] | None,
        headers: dict[str, str],
    ) -> ApiResponse:
        """The response; an expired or revoked token is renewed once."""
        for last in (False, True):
            answer = self._transport.request(
                method,
                path,
                self._authenticator.authorization(),
                body=body,
                parameters=parameters,
                headers=headers,
            )
            if answer.status != 401 or last or not self._authenticator.refresh():
                return answer
        raise InternalError("unreachable")

    def _check_limits(self, answer: ApiResponse, account: str) -> None:
        """Records a pause that GitHub requests, for all processes."""
        if not answer.is_throttled and not answer.is_exhausted:
            return
        error = make_throttled_error(answer, self._clock())
        if self._rate_limiter is not None:
            self._rate_limiter.pause(account, error.wait_s, str(error))
        if answer.is_throttled:
            raise error


def _next_page(answer: ApiResponse) -> str:
    links = parse_header_links(answer.headers.get("link", ""))
    return next((str(link["url"]) for link in links if link.get("rel") == "next"), "")


def _request_subject(path: str) -> str:
    match = _REPOSITORY.search(path)
    return match[1] if match else path.partition("?")[0]
