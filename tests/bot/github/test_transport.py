"""Requests over a real socket: redirects, what is no JSON, and whom our credentials never reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.errors import InfrastructureError, RefusalError
from bot.github.answers import Answer, error_of
from bot.github.client import Client
from bot.github.governor import Governor
from bot.github.identity import TokenSigner
from bot.github.requests import Request
from bot.github.transport import Transport
from tests.bot.github.outbox_kit import Clock, database
from tests.bot.github.site import Routes, Site


@contextmanager
def client(site: Site, governor: Governor | None = None, below: str = "") -> Iterator[Client]:
    transport = Transport(site.url + below, timeout_s=5)
    yield Client(transport, TokenSigner("t0ken"), governor, Clock())
    transport.close()


MOVED: Routes = {
    "/repos/o/old/issues?state=all": (301, {"location": "$/repositories/7/issues?state=all"}, {}),
    "/repositories/7/issues?state=all": (200, {}, [{"number": 1}]),
    "/repos/o/old/issues": (307, {"location": "$/repositories/7/issues"}, {"message": "Temporary Redirect"}),
    "/repositories/7/issues": (201, {}, {"number": 2}),
}


def test_a_renamed_repository_is_read_and_written_under_its_new_name() -> None:
    with Site(MOVED) as site, client(site) as its:
        assert its.get("/repos/o/old/issues", state="all") == [{"number": 1}]
        answer = its.send(Request("POST", "/repos/o/old/issues", {"title": "t"}))
        assert (answer.data, answer.moved) == ({"number": 2}, True)
        assert [
            (method, body) for method, path, body, _ in site.seen if path == "/repositories/7/issues"
        ] == [("POST", {"title": "t"})]
        assert {headers["authorization"] for *_, headers in site.seen} == {"token t0ken"}


def test_credentials_follow_no_redirect_to_another_server() -> None:
    routes: Routes = {"/a": (301, {"location": "http://127.0.0.2:9/a"}, {})}
    elsewhere = r"sends us on to http://127\.0\.0\.2:9"
    with Site(routes) as site, client(site) as its, pytest.raises(RefusalError, match=elsewhere):
        its.get("/a")


def test_a_circle_of_redirects_ends() -> None:
    with Site({"/a": (302, {"location": "/a"}, {})}) as site, client(site) as its:
        with pytest.raises(InfrastructureError, match="leads in circles"):
            its.get("/a")
        assert len(site.seen) == 4


def test_pages_are_followed_below_an_enterprise_servers_path() -> None:
    root = "/api/v3"
    routes: Routes = {
        f"{root}/x?per_page=100&state=all": (
            200,
            {"link": f'<${root}/x?page=2&state=all>; rel="next"'},
            [1, 2],
        ),
        f"{root}/x?page=2&state=all": (200, {"link": f'<${root}/x?page=1>; rel="prev"'}, [3]),
    }
    with Site(routes) as site, client(site, below=root) as its:
        assert list(its.pages("/x", state="all")) == [1, 2, 3]


def test_a_page_of_a_proxy_is_told_of() -> None:
    with Site({"/a": (503, {}, "<h1>Down</h1>")}) as site, client(site) as its:
        with pytest.raises(InfrastructureError, match="answered 503 for /a: <h1>Down</h1>"):
            its.get("/a")
        assert len(site.seen) == 4, "what only reads is tried again at once"
        with pytest.raises(InfrastructureError):
            its.send(Request("POST", "/a", {}))
        assert len(site.seen) == 5


def test_what_has_not_changed_costs_nothing(tmp_path: Path) -> None:
    store = database(tmp_path)
    routes: Routes = {"/a?b=1": (200, {"etag": '"e"', "link": "<$/a?b=2>; rel=next"}, {"x": 1})}
    with Site(routes) as site, client(site, Governor(store)) as its:
        assert [its.get("/a", b=1) for _ in range(3)] == [{"x": 1}] * 3
        assert [headers.get("if-none-match") for *_, headers in site.seen] == [None, '"e"', '"e"']
    store.close()


def test_the_last_request_of_an_hour_pauses_everybody(tmp_path: Path) -> None:
    store, clock = database(tmp_path), Clock()
    left = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(clock.now.timestamp()) + 1200)}
    governor = Governor(store, clock=clock)
    with Site({"/a": (200, left, {"x": 1})}) as site, client(site, governor) as its:
        assert its.get("/a") == {"x": 1}
        with pytest.raises(InfrastructureError, match="the hour's requests are used up"):
            its.get("/a")
        assert len(site.seen) == 1
    store.close()


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (403, "Repository was archived so is read-only.", "Unarchive it"),
        (403, "Unable to create comment because issue is locked.", "Unlock it"),
        (403, "User is blocked", "has blocked us"),
        (403, "Resource not accessible by integration", r"lacks a permission \(checks=write\)"),
        (404, "Not Found", "gone or renamed"),
        (410, "This issue was deleted", "was deleted"),
        (422, "Validation Failed", "a bug of Assay"),
        (422, "Content was flagged as spam", "Ask GitHub's support"),
        (422, "was submitted too quickly", "asks to slow down"),
        (451, "Repository access blocked", "legal reasons"),
    ],
)
def test_each_refusal_says_what_to_do(status: int, said: str, advice: str) -> None:
    error = error_of(Answer(status, {}, {"message": said}), "o/n", "checks=write", Clock().now)
    with pytest.raises(type(error), match=advice):
        raise error
