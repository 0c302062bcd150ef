"""The HTTP server. Every request and response is validated against GitHub's description."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.github import git_http, limits
from tests.github.calls import ROUTES, Actor, Call, RefusedError, Route, RouteResponse, not_found
from tests.github.core import GitHubCore
from tests.github.state import Repository
from tests.github_api.api_schema import answer_faults, faults

_WRITES = "POST|PUT|PATCH|DELETE"


@dataclass
class Fault:
    """A fault of the next request with this method and path.

    status    of the response, 0 for a broken connection
    headers, body   of the response; a str is sent verbatim
    arrived   whether the work is done before the failure
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | str = field(default_factory=lambda: {"message": "planned"})
    arrived: bool = False
    method: str = _WRITES
    path: str = "/repos/.*"

    def hits(self, method: str, path: str) -> bool:
        """Whether the request matches."""
        return bool(re.fullmatch(self.method, method) and re.fullmatch(self.path, path))


@dataclass
class RecordedRequest:
    """A received request and its result."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    status: int = 0


class ApiServer:
    """Serves the API's routes on a free local port, below a path."""

    def __init__(self, hub: GitHubCore, below: str = "") -> None:
        self.hub, self._below = hub, below
        self.faults: deque[Fault] = deque()
        self.seen: list[RecordedRequest] = []
        self.watcher: Callable[[RecordedRequest], None] | None = None
        self._busy: dict[str, int] = {}
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.hub.url = f"http://127.0.0.1:{self._server.server_address[1]}{below}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="github")

    def start(self) -> None:
        """Starts the server."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def together(self, method: str, target: str, headers: dict[str, str], body: Any) -> RouteResponse:
        """`serve`, unless the caller has too many concurrent requests."""
        who = headers.get("authorization", "")
        with self.hub.lock:
            self._busy[who] = self._busy.get(who, 0) + 1
            crowded = self._busy[who] > self.hub.limits.together
        try:
            return limits.too_many_together().answer if crowded else self.serve(method, target, headers, body)
        finally:
            with self.hub.lock:
                self._busy[who] -= 1

    def serve(self, method: str, target: str, headers: dict[str, str], body: Any) -> RouteResponse:
        """The response to a request, errors included."""
        if not target.startswith(f"{self._below}/"):
            return not_found().answer
        target = target.removeprefix(self._below)
        seen = RecordedRequest(method, target, headers, body)
        with self.hub.lock:
            target = self._renamed(target)
            self.seen.append(seen)
            fault = self._fault(method, urlsplit(target).path)
            if fault is not None and not fault.arrived:
                answer = RouteResponse(fault.status, fault.body, fault.headers)
            else:
                answer = self._answered(method, target, headers, body)
                if fault is not None:
                    answer = RouteResponse(fault.status, fault.body, fault.headers)
            seen.status = answer.status
            if self.watcher is not None:
                self.watcher(seen)  # the work is done, the response not yet sent
            return answer

    def _renamed(self, target: str) -> str:
        """The target of a redirect: the repository by its id, a path that the description lacks."""
        match = re.match(r"/repositories/(\d+)(?=[/?]|$)", target)
        repo = self.hub.world.repositories.get(int(match[1])) if match else None
        return f"/repos/{repo.full_name}{target[match.end() :]}" if match and repo else target

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.hits(method, path):
                self.faults.remove(fault)
                return fault
        return None

    def _answered(self, method: str, target: str, headers: dict[str, str], body: Any) -> RouteResponse:
        wrong = faults(method, target, body)
        self.hub.violations += wrong
        limited: dict[str, str] = {}
        try:
            actor = self.hub.identity.actor(headers.get("authorization", ""))
            route, parameters = routed(method, urlsplit(target).path)
            resource = "search" if route.template.startswith("/search") else "core"
            at = self.hub.world.clock()
            self.hub.limits.check(actor.key, method, resource, route.creates, at)
            call = Call(
                self.hub, method, urlsplit(target).path, _query(target), headers, body, actor, parameters
            )
            self._admit(call, route)
            if wrong:
                raise RefusedError(422, "Invalid request.\n\n" + "\n".join(wrong))
            answer = self._unchanged(call, route.serve(call))
            if answer.status != 304:
                self.hub.limits.count(actor.key, resource, at)
            limited = self.hub.limits.headers(actor.key, resource, at)
        except RefusedError as error:
            answer = error.answer
        self.hub.violations += answer_faults(method, target, answer.status, answer.body)
        return RouteResponse(answer.status, answer.body, limited | answer.headers)

    def _unchanged(self, call: Call, answer: RouteResponse) -> RouteResponse:
        """Adds pagination links and the ETag; 304 without a body if the ETag matches."""
        if call.link:
            answer.headers["link"] = call.link
        if call.method != "GET" or answer.status != 200:
            return answer
        tag = f'W/"{hashlib.sha256(json.dumps(answer.body).encode()).hexdigest()}"'
        answer.headers["etag"] = tag
        if call.headers.get("if-none-match") == tag:
            return RouteResponse(304, None, answer.headers)
        return answer

    def _admit(self, call: Call, route: Route) -> None:
        """Raises RefusedError if the caller lacks permission."""
        if route.app != (call.actor.kind == "app"):
            needs = "A JSON web token" if route.app else "Credentials of an installation or a person"
            raise RefusedError(401, f"{needs} could not be decoded")
        if "owner" in call.parameters:
            call.found = self._found(call)
            if not route.app:
                _admit_to(call, route, call.found)

    def _found(self, call: Call) -> Repository:
        name = f"{call.parameters['owner']}/{call.parameters['repo']}"
        repo = self.hub.world.named(name)
        if repo is None or not _sees(call.actor, repo):
            raise not_found()
        if repo.full_name.lower() != name.lower():
            rest = call.path.split("/", 4)[4:]
            place = "/".join([f"{self.hub.url}/repositories/{repo.id}", *rest])
            status = 301 if call.method == "GET" else 307  # the method must not change on a redirect
            raise RefusedError(status, "Moved Permanently", {"location": place})
        return repo


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # more than concurrent callers

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnected; any other exception is a bug of the double."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def routed(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The operation of a request, and the parameters in its path. Raises RefusedError 404 for none."""
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match and route.method == method:
            return route, {name: unquote(value) for name, value in match.groupdict().items()}
    raise not_found()


def _query(target: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(target).query))


def _sees(actor: Actor, repo: Repository) -> bool:
    if not repo.private or actor.kind == "app" or repo.id in actor.repositories:
        return True
    return actor.kind == "user" and repo.role(actor.writer.login) != "none"


def _admit_to(call: Call, route: Route, repo: Repository) -> None:
    writing = call.method != "GET"
    if call.actor.kind == "installation":
        inside = repo.id in call.actor.repositories
        if (writing or repo.private) and not (inside and call.actor.may(route.needs)):
            needed = {"x-accepted-github-permissions": "; ".join(route.needs)}
            raise RefusedError(403, "Resource not accessible by integration", needed)
    elif writing and any(need.startswith("checks") for need in route.needs):
        raise RefusedError(403, "You must authenticate via a GitHub App.")
    elif call.actor.kind == "nobody" and writing:
        raise RefusedError(401, "Requires authentication")
    if writing and repo.archived:
        raise RefusedError(403, "Repository was archived so is read-only.")


def _handler(api_server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet: the client delays the first one's receipt by 40 ms

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name above)
            """Silences the log."""

        def _serve(self) -> None:
            length = int(self.headers.get("content-length", 0))
            data = self.rfile.read(length)
            if len(data) < length:  # the client died while sending
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path.startswith(git_http.PREFIX):
                self._send(*git_http.serve(api_server.hub, self.command, self.path, headers, data))
                return
            body = json.loads(data or b"null")
            self._answer(api_server.together(self.command, self.path, headers, body))

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

        def _answer(self, answer: RouteResponse) -> None:
            if answer.status == 0:
                self.close_connection = True
                return
            plain = isinstance(answer.body, str)  # a proxy's page
            data = (
                b"" if answer.body is None else (answer.body if plain else json.dumps(answer.body)).encode()
            )
            kind = "text/html" if plain else "application/json"
            self._send(answer.status, {"content-type": kind, **answer.headers}, data)

        def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
