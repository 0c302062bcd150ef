"""HTTP requests to one server's REST API.

`bot.github.requester` explains why these are not the requests of PyGithub, whose methods end here, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from bot.errors import InfrastructureError, RefusalError
from bot.github.limits import MAX_RESPONSE_BYTES, TIMEOUT_S
from bot.github.responses import ApiResponse, UnexpectedResponseError

USER_AGENT = "assay (https://docs.github.com/rest)"
#: Sent to github.com only: Enterprise servers may be older.
PUBLIC_API, API_VERSION = "https://api.github.com", "2022-11-28"
_REDIRECTS = frozenset({301, 302, 307, 308})
_CHUNK_BYTES = 1 << 16
_MAX_REDIRECTS = 3  # GitHub: "clients should follow"; repeated renames redirect to the last name at once
#: Only reads are repeated at once, after 0.5 and 1 s; the rate limiter handles `retry-after`.
_RETRY = Retry(
    total=3,
    allowed_methods=["GET"],
    status_forcelist=[500, 502, 503, 504],
    backoff_factor=0.5,
    respect_retry_after_header=False,
    raise_on_status=False,
)


class Transport:
    """Sends requests to the API at `url`. Thread-safe: each thread has its own connection."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout_s
        self._local = threading.local()
        self._sessions: list[requests.Session] = []
        self._lock = threading.Lock()

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
        """The response, whatever its status, after redirects with unchanged method and body.

        path  below the API's root, or a URL from GitHub

        Raises InfrastructureError if there is no response, RefusalError for a redirect to another server.
        """
        url = path if path.startswith(f"{self.url}/") else self._below_root(path)
        data = None if body is None else json.dumps(body)
        sent = {"Authorization": authorization, **(headers or {})} | (
            {"Content-Type": "application/json"} if data else {}
        )
        for redirect_count in range(_MAX_REDIRECTS + 1):
            answer = self._once(method, url, data, parameters if not redirect_count else None, sent)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return replace(answer, redirected=redirect_count > 0)
            url = self._resolve_redirect(url, answer.headers["location"])
        raise InfrastructureError(f"{url} leads in circles; tried again later")

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            sessions, self._sessions = self._sessions, []
        for session in sessions:
            session.close()

    def _once(
        self,
        method: str,
        url: str,
        data: str | None,
        parameters: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> ApiResponse:
        try:
            with self._session().request(
                method,
                url,
                params=parameters,
                data=data,
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                return _to_response(answer)
        except (requests.RequestException, ValueError) as error:  # ValueError: the Location is no URL
            raise InfrastructureError(
                f"GitHub did not answer: {type(error).__name__}; tried again later"
            ) from error

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.auth = _no_auth
            session.headers.update({"User-Agent": USER_AGENT, "Accept": "application/vnd.github+json"})
            if self.url == PUBLIC_API:
                session.headers["X-GitHub-Api-Version"] = API_VERSION
            adapter = HTTPAdapter(max_retries=_RETRY)
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            self._local.session = session
            with self._lock:
                self._sessions.append(session)
        return session

    def _below_root(self, path: str) -> str:
        """The URL of a path; credentials must not leave the server, whatever a `Link` header contains."""
        if not path.startswith("/"):
            raise RefusalError(f"{path[:200]!r} is not an address of {self.url}; nothing was sent there")
        return self.url + path

    def _resolve_redirect(self, requested: str, location: str) -> str:
        """The URL of a redirect. Raises RefusalError if it is on another server."""
        try:
            target = urljoin(requested, location)
            here, there = urlsplit(self.url), urlsplit(target)
        except ValueError as error:
            raise RefusalError(
                f"{self.url} redirects to {location[:200]!r}, which is no address: {error}"
            ) from error
        if (here.scheme, here.netloc.lower()) != (there.scheme, there.netloc.lower()):
            raise RefusalError(
                f"{self.url} redirects to {there.scheme}://{there.netloc}; if that server is right, set "
                "ASSAY_GITHUB_API_URL to it"
            )
        return target


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No authentication but the header: otherwise requests reads ~/.netrc."""
    return request


def _to_response(response: requests.Response) -> ApiResponse:
    """The response, read; raises UnexpectedResponseError if it is too long."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    body = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise UnexpectedResponseError(
                f"GitHub's answer is longer than {MAX_RESPONSE_BYTES} bytes; a proxy may have answered "
                "instead of GitHub. It is tried again later"
            )
    return ApiResponse(response.status_code, headers, _data(bytes(body)))


def _data(body: bytes) -> Any:
    """The response's JSON; a page of a proxy or load balancer counts as a message."""
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return {"message": body.decode(errors="replace")[:200]}
