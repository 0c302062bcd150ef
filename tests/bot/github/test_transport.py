"""Requests over a real socket: redirects, what is no JSON, and whom our credentials never reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.errors import InfrastructureError, RefusalError
from bot.github import transport as transport_module
from bot.github.client import Client
from bot.github.identity import TokenAuthenticator
from bot.github.limits import PER_PAGE
from bot.github.rate_limiter import RateLimiter
from bot.github.requests import Request
from bot.github.responses import ApiResponse, NotFoundError, UnexpectedResponseError, make_error
from bot.github.transport import Transport
from tests.bot.github.outbox_kit import Clock, database
from tests.github import operations
from tests.github.double import GitHubDouble
from tests.github.server import Fault

TARGET = "octo/compiler"
ISSUES = f"/repos/{TARGET}/issues"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def github(tmp_path: Path, clock: Clock) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path, clock) as made:
        made.repository(TARGET)
        yield made


@contextmanager
def client(github: GitHubDouble, rate_limiter: RateLimiter | None = None) -> Iterator[Client]:
    transport = Transport(github.url, timeout_s=5)
    yield Client(transport, TokenAuthenticator(github.token("octo")), rate_limiter, github.hub.world.clock)
    transport.close()


def issues(github: GitHubDouble, count: int) -> None:
    """So many issues that nobody is told of."""
    record = github.repository(TARGET).record
    for number in range(count):
        operations.new_issue(github.hub, record, record.owner, f"{number}", None)


def test_a_renamed_repository_is_read_and_written_under_its_new_name(github: GitHubDouble) -> None:
    issues(github, 1)
    record = github.repository(TARGET).record
    github.repository(TARGET).rename("translator")
    with client(github) as its:
        assert [one["number"] for one in its.get(ISSUES, state="all")] == [1]
        answer = its.send(Request("POST", ISSUES, {"title": "t"}))
        assert (answer.data["number"], answer.redirected) == (2, True)
    posts = [(seen.path, seen.body) for seen in github.seen if seen.method == "POST"]
    there = f"/repositories/{record.id}/issues"
    assert posts == [(ISSUES, {"title": "t"}), (there, {"title": "t"})]
    assert {seen.headers["authorization"] for seen in github.seen} == {f"token {github.token('octo')}"}


def test_credentials_follow_no_redirect_to_another_server(github: GitHubDouble) -> None:
    github.faults.append(Fault(301, {"location": "http://127.0.0.2:9/a"}, method="GET"))
    elsewhere = r"redirects to http://127\.0\.0\.2:9"
    with client(github) as its, pytest.raises(RefusalError, match=elsewhere):
        its.get(ISSUES)


@pytest.mark.parametrize(
    "location",
    ["@127.0.0.2:9/a", "//127.0.0.2:9/a", ".evil.example/a", "https://127.0.0.1/", "http://[", "\\\\x/a"],
)
def test_no_form_of_location_leads_elsewhere(github: GitHubDouble, location: str) -> None:
    github.faults.append(Fault(301, {"location": location}, method="GET"))
    with client(github) as its, pytest.raises((RefusalError, NotFoundError, InfrastructureError)):
        its.get(ISSUES)
    assert all(seen.path.startswith("/") for seen in github.seen)
    github.hub.violations.clear()  # paths that GitHub does not describe


def test_a_page_elsewhere_is_not_asked_for(github: GitHubDouble) -> None:
    link = {"link": '<@127.0.0.2:9/issues>; rel="next"'}
    github.faults.append(Fault(200, link, "[]", method="GET"))
    with client(github) as its, pytest.raises(RefusalError, match="nothing was sent there"):
        list(its.pages(ISSUES))


@pytest.mark.parametrize("body", ["<h1>Welcome</h1>", "3", '{"a": 1}', "null"])
def test_a_list_that_is_none_is_tried_again(github: GitHubDouble, body: str) -> None:
    github.faults.append(Fault(200, {}, body, method="GET"))
    with client(github) as its, pytest.raises(UnexpectedResponseError):
        list(its.pages(ISSUES))


def test_an_endless_answer_is_not_read_to_its_end(
    github: GitHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "MAX_RESPONSE_BYTES", 1 << 17)
    github.faults.append(Fault(200, {}, f"[{' ' * (1 << 17)}]", method="GET"))
    with client(github) as its:
        with pytest.raises(UnexpectedResponseError, match="longer than 131072 bytes"):
            its.get(ISSUES)
        assert its.get(ISSUES) == []


def test_a_circle_of_redirects_ends(github: GitHubDouble) -> None:
    github.faults.extend(Fault(302, {"location": ISSUES}, method="GET") for _ in range(9))
    with client(github) as its, pytest.raises(InfrastructureError, match="leads in circles"):
        its.get(ISSUES)
    assert len(github.seen) == 4


def test_pages_are_followed_below_an_enterprise_servers_path(tmp_path: Path, clock: Clock) -> None:
    with GitHubDouble(tmp_path, clock, below="/api/v3") as github, client(github) as its:
        assert github.url.endswith("/api/v3")
        github.repository(TARGET)
        issues(github, 2 * PER_PAGE + 1)
        numbers = [one["number"] for one in its.pages(ISSUES, state="all", direction="asc")]
        assert numbers == list(range(1, 2 * PER_PAGE + 2))
        assert len(github.seen) == 3


def test_a_page_of_a_proxy_is_told_of(github: GitHubDouble) -> None:
    github.faults.extend(Fault(503, {}, "<h1>Down</h1>", method="GET|POST") for _ in range(5))
    with client(github) as its:
        with pytest.raises(InfrastructureError, match=f"answered 503 for {TARGET}: <h1>Down</h1>"):
            its.get(ISSUES)
        assert len(github.seen) == 4, "what only reads is tried again at once"
        with pytest.raises(InfrastructureError):
            its.send(Request("POST", ISSUES, {}))
        assert len(github.seen) == 5


def test_what_has_not_changed_costs_nothing(github: GitHubDouble, tmp_path: Path) -> None:
    store = database(tmp_path)
    issues(github, 1)
    with client(github, RateLimiter(store)) as its:
        first, *later = [its.get(ISSUES, state="all") for _ in range(3)]
    assert [one["number"] for one in first] == [1]
    assert later == [first, first]
    asked = [seen.headers.get("if-none-match") for seen in github.seen]
    assert (asked[0], len(set(asked[1:]))) == (None, 1)
    assert [seen.status for seen in github.seen] == [200, 304, 304]
    store.close()


def test_the_last_request_of_an_hour_pauses_everybody(
    github: GitHubDouble, clock: Clock, tmp_path: Path
) -> None:
    store = database(tmp_path)
    github.hub.limits.requests = 1
    rate_limiter = RateLimiter(store, clock=clock)
    with client(github, rate_limiter) as its:
        assert its.get(ISSUES) == []
        with pytest.raises(InfrastructureError, match="the hour's requests are used up"):
            its.get(ISSUES)
        assert len(github.seen) == 1
        clock.advance(hours=1, seconds=1)
        assert its.get(ISSUES) == []
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
    error = make_error(ApiResponse(status, {}, {"message": said}), "o/n", "checks=write", Clock().now)
    with pytest.raises(type(error), match=advice):
        raise error
