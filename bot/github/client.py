"""One account's view of GitHub: requests signed, kept within the limits, their failures made our errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlencode

from requests.utils import parse_header_links

from bot.errors import InternalError
from bot.github.answers import Answer, MissingError, error_of, throttled
from bot.github.governor import MAX_KEPT, SEARCH, Governor
from bot.github.requests import Request

PER_PAGE = 100  # the most GitHub gives at once
_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)")


class Carrier(Protocol):
    """What carries requests: `bot.github.transport.Transport`."""

    def request(
        self,
        method: str,
        path: str,
        authorization: str,
        *,
        body: object = None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer, whatever its status."""
        ...

    def close(self) -> None:
        """Closes all connections."""
        ...


class Signer(Protocol):
    """Signs one account in."""

    @property
    def account(self) -> str:
        """Whose limits count."""
        ...

    def authorization(self) -> str:
        """The header's value."""
        ...

    def renew(self) -> bool:
        """Forgets what was just refused; False if nothing better can be had."""
        ...


class Client:
    """Requests on behalf of one account. For any number of threads.

    governor  None for a client that nothing limits and that keeps no answers
    """

    def __init__(
        self, transport: Carrier, signer: Signer, governor: Governor | None, clock: Callable[[], datetime]
    ) -> None:
        self._transport, self._signer, self._governor, self._clock = transport, signer, governor, clock

    def get(self, path: str, /, **parameters: Any) -> Any:
        """What is there. Raises MissingError, RefusalError, ThrottledError, InfrastructureError."""
        return self._get(path, parameters)["value"]

    def maybe(self, path: str, /, **parameters: Any) -> Any | None:
        """What is there, None for nothing."""
        try:
            return self.get(path, **parameters)
        except MissingError:
            return None

    def pages(self, path: str, /, key: str = "", **parameters: Any) -> Iterator[Any]:
        """The items of a list, page by page as they are wanted; `key` names it where GitHub wraps it."""
        page = self._get(path, {"per_page": PER_PAGE, **parameters})
        while True:
            yield from page["value"][key] if key else page["value"]
            if not page["next"]:
                return
            page = self._get(page["next"], {})

    def send(self, request: Request, need: str = "") -> Answer:
        """Carries out a request that changes something; `need` is the permission it takes."""
        if self._governor is not None:
            self._governor.before_write(self._signer.account, creates=request.method == "POST")
        answer = self._signed(request.method, request.path, request.body, None, {})
        self._mind(answer, self._signer.account)
        if answer.status >= 300:
            raise error_of(answer, _about(request.path), need, self._clock())
        return answer

    def _get(self, path: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The answer's `value`, and the address of the `next` page, "" for none."""
        account, search = self._signer.account, path.startswith("/search/")
        url = f"{account} {path}?{urlencode(sorted(parameters.items()))}"
        kept = self._before(account, url, search=search)
        headers = {"If-None-Match": kept[0]} if kept else {}
        answer = self._signed("GET", path, None, parameters, headers)
        self._mind(answer, account + SEARCH if search else account)
        if answer.status == 304 and kept:
            return kept[1]
        if answer.status >= 300:
            raise error_of(answer, _about(path), "", self._clock())
        told = {"value": answer.data, "next": _next(answer)}
        etag = answer.headers.get("etag", "")
        size = int(answer.headers.get("content-length", "0") or 0)
        if self._governor is not None and etag and size <= MAX_KEPT and not search:
            self._governor.keep(url, etag, told)
        return told

    def _before(self, account: str, url: str, *, search: bool) -> tuple[str, dict[str, Any]] | None:
        if self._governor is None:
            return None
        if search:
            self._governor.before_search(account)
            return None
        self._governor.before_read(account)
        return self._governor.kept(url)

    def _signed(
        self, method: str, path: str, body: object, parameters: dict[str, Any] | None, headers: dict[str, str]
    ) -> Answer:
        """The answer; a token that expired or was revoked in the middle is renewed once."""
        for last in (False, True):
            answer = self._transport.request(
                method,
                path,
                self._signer.authorization(),
                body=body,
                parameters=parameters,
                headers=headers,
            )
            if answer.status != 401 or last or not self._signer.renew():
                return answer
        raise InternalError("unreachable")

    def _mind(self, answer: Answer, account: str) -> None:
        """Passes on to everybody that GitHub wants this account to wait."""
        if not answer.throttles and not answer.spent:
            return
        error = throttled(answer, self._clock())
        if self._governor is not None:
            self._governor.pause(account, error.wait_s, str(error))
        if answer.throttles:
            raise error


def _next(answer: Answer) -> str:
    links = parse_header_links(answer.headers.get("link", ""))
    return next((str(link["url"]) for link in links if link.get("rel") == "next"), "")


def _about(path: str) -> str:
    match = _REPOSITORY.search(path)
    return match[1] if match else path.partition("?")[0]
