"""A GitHub in memory, for laws that want thousands of requests: what is there, and what goes wrong next.

It stands where HTTP would; each request is held to GitHub's own description. `tests/github` is the one
to talk to over a socket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.errors import InfrastructureError
from bot.github.responses import ApiResponse
from tests.github_api.api_schema import faults

ME = "assay-test[bot]"
APP = {"slug": "assay-test", "id": 1}
TARGET = "acme/graphs"
Json = dict[str, Any]


class ProcessKilled(BaseException):
    """Stands for the end of the process: nobody catches it."""


def answer(status: int, data: Any, **headers: str) -> ApiResponse:
    return ApiResponse(status, {name.replace("_", "-"): value for name, value in headers.items()}, data)


#: What may happen to a write: (whether it arrives, what comes back).
LIMITED = answer(403, {"message": "You have exceeded a secondary rate limit."}, retry_after="7")
TROUBLE: Mapping[str, tuple[bool, ApiResponse | BaseException]] = {
    "dies before": (False, ProcessKilled()),
    "dies after": (True, ProcessKilled()),
    "no answer, not arrived": (False, InfrastructureError("lost")),
    "no answer, arrived": (True, InfrastructureError("lost")),
    "502, arrived": (True, answer(502, {"message": "oops"})),
    "throttled": (False, LIMITED),
    "token ended": (False, answer(401, {"message": "Bad credentials"})),
}


@dataclass
class FakeGitHub:
    """One repository, as one App sees it. `trouble` happens to the next writes, one by one, "" being none."""

    comments: dict[int, Json] = field(default_factory=dict)
    issues: dict[int, Json] = field(default_factory=dict)
    runs: dict[int, Json] = field(default_factory=dict)
    labels: dict[str, Json] = field(default_factory=dict)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    gone: bool = False
    granted: Mapping[str, str] | None = None
    tokens: list[Json] = field(default_factory=list)
    revoked: int = 0
    expires: datetime = datetime(2099, 1, 1, tzinfo=UTC)
    installation: int = 4711
    meanwhile: Callable[[], None] | None = None  # done once, while a write is on its way
    _ids: int = 100

    def request(
        self,
        method: str,
        path: str,
        authorization: str,
        *,
        body: Any = None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        assert faults(method, path, body) == []
        self.seen.append((method, path))
        self.bodies.append(body)
        content = method in ("POST", "PATCH") and path.startswith("/repos/")
        arrives, outcome = (
            TROUBLE.get(self.trouble.pop(0), (True, None)) if content and self.trouble else (True, None)
        )
        if content and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        if authorization in self._strangers() and path.startswith("/repos/"):
            return answer(404, {"message": "Not Found"})
        made = self._route(method, path, body, dict(parameters or {})) if arrives else None
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            return outcome
        assert made is not None
        return made

    def close(self) -> None:
        """There is nothing to close."""

    def writes(self, ending: str = "") -> list[str]:
        return [f"{method} {path}" for method, path in self.seen if method != "GET" and path.endswith(ending)]

    def _strangers(self) -> set[str]:
        """What the tokens of installations that have the repository no more look like."""
        minted = enumerate(self.tokens, start=1)
        return {f"token ghs_{number}" for number, one in minted if one["by"] != self.installation}

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _route(self, method: str, path: str, body: Any, parameters: Json) -> ApiResponse:
        if self.gone and path.startswith("/repos/") and not path.endswith("/installation"):
            return answer(404, {"message": "Not Found"})
        for wanted, pattern, serve in self._routes():
            match = re.fullmatch(pattern, path)
            if match and wanted == method:
                return serve(match, body, parameters)
        return answer(404, {"message": "Not Found"})

    def _routes(self) -> list[tuple[str, str, Callable[[re.Match[str], Any, Json], ApiResponse]]]:
        repo = f"/repos/{TARGET}"
        return [
            ("GET", "/app", lambda *_: answer(200, APP)),
            ("GET", repo, lambda *_: answer(200, {"id": 7, "full_name": TARGET})),
            ("GET", f"{repo}/installation", lambda *_: answer(200, {"id": self.installation})),
            ("GET", r"/app/installations/(\d+)", lambda *_: answer(200, {"permissions": self.granted})),
            ("POST", r"/app/installations/(\d+)/access_tokens", self._token),
            ("DELETE", "/installation/token", self._revoke),
            ("POST", f"{repo}/issues", self._new_issue),
            ("GET", f"{repo}/issues", lambda _m, _b, p: self._page(self.issues.values(), p)),
            ("PATCH", rf"{repo}/issues/(\d+)", self._change_issue),
            ("POST", rf"{repo}/issues/(\d+)/comments", self._new_comment),
            ("GET", rf"{repo}/issues/(\d+)/comments", self._list_comments),
            ("PATCH", rf"{repo}/issues/comments/(\d+)", self._change_comment),
            ("POST", rf"{repo}/issues/comments/(\d+)/reactions", self._react),
            ("POST", rf"{repo}/issues/(\d+)/labels", self._add_labels),
            ("GET", rf"{repo}/labels/(.+)", self._label),
            ("POST", f"{repo}/labels", self._new_label),
            ("POST", f"{repo}/check-runs", self._new_run),
            ("PATCH", rf"{repo}/check-runs/(\d+)", self._change_run),
            ("GET", rf"{repo}/check-runs/(\d+)/annotations", self._annotations),
            ("GET", rf"{repo}/commits/(\w+)/check-runs", self._list_runs),
            ("POST", rf"{repo}/statuses/(\w+)", self._status),
        ]  # fmt: skip

    def _page(self, items: Any, parameters: Json) -> ApiResponse:
        """One page; the next one's address is a path of our own making."""
        found, size, page = list(items), int(parameters.get("per_page", 30)), int(parameters.get("page", 1))
        assert len(found) <= size * page, "the tests here need one page"
        return answer(200, found)

    def _token(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        requested = body["permissions"]
        if self.granted is not None and any(
            self.granted.get(name) not in (level, "write") for name, level in requested.items()
        ):
            return answer(422, {"message": "The permissions requested are not granted to this installation."})
        self.tokens.append(body | {"by": int(match[1])})
        return answer(201, {"token": f"ghs_{len(self.tokens)}", "expires_at": self.expires.isoformat()})

    def _revoke(self, *_: Any) -> ApiResponse:
        self.revoked += 1
        return answer(204, None)

    def _new_issue(self, _match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        number = len(self.issues) + 1
        page = f"https://github.com/{TARGET}/issues/{number}"
        self.issues[number] = {
            **body,
            "number": number,
            "user": {"login": ME},
            "html_url": page,
            "state": "open",
        }
        return answer(201, self.issues[number])

    def _change_issue(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        if int(match[1]) not in self.issues:
            return answer(410, {"message": "This issue was deleted"})
        self.issues[int(match[1])] |= body
        return answer(200, self.issues[int(match[1])])

    def _new_comment(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        number = self._id()
        page = f"https://github.com/{TARGET}/issues/{match[1]}#issuecomment-{number}"
        made = {**body, "id": number, "user": {"login": ME}, "html_url": page, "on": int(match[1])}
        self.comments[number] = made
        return answer(201, made)

    def _list_comments(self, match: re.Match[str], _b: Any, parameters: Json) -> ApiResponse:
        return self._page([one for one in self.comments.values() if one["on"] == int(match[1])], parameters)

    def _change_comment(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        there = self.comments.get(int(match[1]))
        if there is None:
            return answer(404, {"message": "Not Found"})
        there |= body
        return answer(200, there)

    def _react(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        one = (int(match[1]), body["content"])
        if one[0] not in self.comments:
            return answer(404, {"message": "Not Found"})
        there = one in self.reactions
        self.reactions += [] if there else [one]
        return answer(200 if there else 201, {"id": self.reactions.index(one) + 1})

    def _label(self, match: re.Match[str], _b: Any, _p: Json) -> ApiResponse:
        there = self.labels.get(match[1].replace("%20", " "))
        return answer(200, there) if there else answer(404, {"message": "Not Found"})

    def _new_label(self, _match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        if body["name"] in self.labels:
            return answer(422, {"message": "Validation Failed", "errors": [{"code": "already_exists"}]})
        self.labels[body["name"]] = body
        return answer(201, body)

    def _add_labels(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        assert set(body["labels"]) <= set(self.labels)
        issue = self.issues[int(match[1])]
        issue["labels"] = sorted({*issue.get("labels", ()), *body["labels"]})
        return answer(200, [self.labels[name] for name in issue["labels"]])

    def _new_run(self, _match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        number = self._id()
        page = f"https://github.com/{TARGET}/runs/{number}"
        self.runs[number] = {"id": number, "html_url": page, "app": APP, "notes": []}
        return self._update(number, body, 201)

    def _change_run(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        return self._update(int(match[1]), body, 200)

    def _update(self, number: int, body: Json, status: int) -> ApiResponse:
        """As GitHub does it: annotations are added to those that are there."""
        notes = body.get("output", {}).get("annotations", [])
        assert len(notes) <= 50
        run = self.runs[number]
        run |= body
        run["notes"] = run["notes"] + notes
        return answer(status, run)

    def _annotations(self, match: re.Match[str], _b: Any, _p: Json) -> ApiResponse:
        return answer(200, self.runs[int(match[1])]["notes"])

    def _list_runs(self, match: re.Match[str], _b: Any, parameters: Json) -> ApiResponse:
        found = [one for one in self.runs.values() if one["head_sha"] == match[1]]
        return answer(200, {"total_count": len(found), "check_runs": found})

    def _status(self, match: re.Match[str], body: Json, _p: Json) -> ApiResponse:
        self.statuses.append({**body, "sha": match[1]})
        return answer(
            201,
            {"id": len(self.statuses), "url": f"https://api.github.com/repos/{TARGET}/statuses/{match[1]}"},
        )
