"""A small GitHub to talk to over real HTTP. It checks every request against GitHub's own description."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.github_api.description import faults

ME = "assay-test[bot]"
INSTALLATION = 4711


@dataclass
class Fault:
    """How the next write goes wrong.

    status    the answer, 0 for a connection that breaks without one
    headers, body   of the answer
    arrived   whether GitHub did the work before it failed to say so
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=lambda: {"message": "planned"})
    arrived: bool = False


@dataclass
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeGitHub:
    """The server and what it holds; `faults` go wrong one by one, for POSTs of content only."""

    def __init__(self) -> None:
        self.issues: dict[str, list[dict[str, Any]]] = {}
        self.check_runs: dict[str, list[dict[str, Any]]] = {}
        self.faults: deque[Fault] = deque()
        self.seen: list[Seen] = []
        self.violations: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name above)
                """Keeps the tests' output clean."""

            def do_GET(self) -> None:
                owner._serve(self, None)

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                owner._serve(self, json.loads(self.rfile.read(length) or b"null"))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> FakeGitHub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def posts(self, ending: str) -> list[Seen]:
        """The POSTs that came in on paths with this ending."""
        return [seen for seen in self.seen if seen.method == "POST" and seen.path.endswith(ending)]

    def _serve(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.seen.append(Seen(handler.command, handler.path, headers, body))
        self.violations += faults(handler.command, handler.path, body)
        split = urlsplit(handler.path)
        content = handler.command == "POST" and split.path.startswith("/repos/")
        fault = self.faults.popleft() if content and self.faults else None
        if fault is not None and not fault.arrived:
            self._answer(handler, fault.status, fault.body, fault.headers)
            return
        status, answer = self._route(handler.command, split.path, parse_qs(split.query), body)
        if fault is not None:
            self._answer(handler, fault.status, fault.body, fault.headers)
            return
        self._answer(handler, status, answer, self._link(split.path, split.query, answer))

    def _link(self, path: str, query: str, answer: Any) -> dict[str, str]:
        """The header that leads from a full page to the next."""
        given = {name: values[0] for name, values in parse_qs(query).items()}
        if not isinstance(answer, list) or len(answer) < int(given.get("per_page", "30")):
            return {}
        given["page"] = str(int(given.get("page", "1")) + 1)
        return {"link": f'<{self.url}{path}?{urlencode(given)}>; rel="next"'}

    def _answer(
        self, handler: BaseHTTPRequestHandler, status: int, answer: Any, headers: dict[str, str]
    ) -> None:
        if status == 0:
            handler.close_connection = True
            return
        data = json.dumps(answer).encode()
        handler.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _route(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        routes: list[tuple[str, str, Callable[..., tuple[int, Any]]]] = [
            ("POST", r"/repos/([^/]+/[^/]+)/issues", lambda repo: self._new_issue(repo, body)),
            ("GET", r"/repos/([^/]+/[^/]+)/issues", lambda repo: self._list_issues(repo, query)),
            ("POST", r"/repos/([^/]+/[^/]+)/check-runs", lambda repo: self._new_run(repo, body)),
            ("GET", r"/repos/([^/]+/[^/]+)/commits/([^/]+)/check-runs", self._list_runs),
            ("GET", r"/repos/([^/]+/[^/]+)/commits/([^/]+)", self._commit),
            ("GET", r"/repos/([^/]+/[^/]+)/installation", lambda _: (200, {"id": INSTALLATION})),
            ("GET", r"/app", lambda: (200, {"slug": "assay-test", "id": 1})),
            ("GET", r"/user", lambda: (200, {"login": ME})),
            ("POST", r"/app/installations/(\d+)/access_tokens", lambda _: (201, _TOKEN)),
        ]
        for wanted, pattern, serve in routes:
            match = re.fullmatch(pattern, path)
            if match and wanted == method:
                return serve(*match.groups())
        return 404, {"message": "Not Found"}

    def _new_issue(self, repo: str, body: dict[str, Any]) -> tuple[int, Any]:
        issues = self.issues.setdefault(repo, [])
        number = len(issues) + 1
        issue = {
            "number": number,
            "title": body["title"],
            "body": body.get("body"),
            "user": {"login": ME},
            "html_url": f"https://github.com/{repo}/issues/{number}",
            "url": f"{self.url}/repos/{repo}/issues/{number}",
        }
        issues.append(issue)
        return 201, issue

    def _list_issues(self, repo: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        page, size = int(query.get("page", ["1"])[0]), int(query.get("per_page", ["30"])[0])
        return 200, self.issues.get(repo, [])[(page - 1) * size : page * size]

    def _new_run(self, repo: str, body: dict[str, Any]) -> tuple[int, Any]:
        runs = self.check_runs.setdefault(repo, [])
        number = len(runs) + 1
        url = f"https://github.com/{repo}/runs/{number}"
        runs.append({**body, "id": number, "html_url": url})
        return 201, runs[-1]

    def _list_runs(self, repo: str, sha: str) -> tuple[int, Any]:
        runs = [run for run in self.check_runs.get(repo, []) if run["head_sha"] == sha]
        return 200, {"total_count": len(runs), "check_runs": runs}

    def _commit(self, repo: str, sha: str) -> tuple[int, Any]:
        return 200, {"sha": sha, "url": f"{self.url}/repos/{repo}/commits/{sha}"}


_TOKEN = {"token": "ghs_installation", "expires_at": "2099-01-01T00:00:00Z"}
