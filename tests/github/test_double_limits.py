"""GitHub's documented limits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.github.client import Client, as_installation
from tests.github.conftest import Clock
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble
from tests.github.server import Fault

ISSUES = "/repos/octo/compiler/issues"


@pytest.fixture
def client(hub: GitHubDouble, repository: RepositoryDouble) -> Client:
    return as_installation(hub, "octo")


def test_eighty_creations_a_minute_and_no_more(client: Client, clock: Clock) -> None:
    for number in range(80):
        assert client.ask("POST", ISSUES, {"title": str(number)}).status_code == 201
    refused = client.ask("POST", ISSUES, {"title": "one more"})
    assert (refused.status_code, refused.headers["retry-after"]) == (403, "60")
    assert "secondary rate limit" in refused.json()["message"]
    assert client.ask("GET", ISSUES).status_code == 200  # reading goes on
    clock.advance(seconds=60)
    assert client.ask("POST", ISSUES, {"title": "later"}).status_code == 201


def test_creations_an_hour_are_limited_too(client: Client, hub: GitHubDouble, clock: Clock) -> None:
    hub.hub.limits.creations_an_hour = 3
    for number in range(3):
        client.post(ISSUES, {"title": str(number)})
        clock.advance(minutes=10)
    refused = client.ask("POST", ISSUES, {"title": "one more"})
    assert (refused.status_code, refused.headers["retry-after"]) == (403, str(30 * 60))


def test_points_are_spent_five_times_as_fast_by_writes(client: Client, hub: GitHubDouble) -> None:
    hub.hub.limits.points = 11
    assert client.ask("PATCH", f"{ISSUES}/1", {}).status_code == 404
    assert client.ask("GET", ISSUES).status_code == 200
    assert client.ask("PATCH", f"{ISSUES}/1", {}).status_code == 404
    assert client.ask("GET", ISSUES).headers["retry-after"] == "60"


def test_the_primary_limit_is_told_and_resets(client: Client, hub: GitHubDouble, clock: Clock) -> None:
    hub.hub.limits.requests = 2
    first = client.ask("GET", ISSUES).headers
    assert (first["x-ratelimit-limit"], first["x-ratelimit-remaining"]) == ("2", "1")
    client.get(ISSUES)
    refused = client.ask("GET", ISSUES)
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("API rate limit exceeded")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.headers["x-ratelimit-reset"]) == int(clock().timestamp()) + 3600
    clock.advance(hours=1)
    renewed = as_installation(hub, "octo")
    assert renewed.ask("GET", ISSUES).headers["x-ratelimit-remaining"] == "1"


def test_what_did_not_change_costs_nothing(client: Client, hub: GitHubDouble) -> None:
    client.post(ISSUES, {"title": "a"})
    first = client.ask("GET", ISSUES)
    again = client.ask("GET", ISSUES, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    client.post(ISSUES, {"title": "b"})
    changed = client.ask("GET", ISSUES, headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, len(changed.json())) == (200, 2)


def test_thirty_searches_a_minute(client: Client, clock: Clock) -> None:
    search = "/search/issues?q=crash+repo:octo/compiler"
    assert [client.ask("GET", search).status_code for _ in range(31)] == [200] * 30 + [403]
    assert client.get("/rate_limit")["resources"]["search"]["remaining"] == 0
    clock.advance(minutes=1)
    assert client.ask("GET", search).status_code == 200


def test_too_many_at_once_are_turned_away(client: Client, hub: GitHubDouble) -> None:
    hub.hub.limits.together = 1
    statuses = []
    with hub.hub.lock:  # no response while the lock is held
        asking = [
            threading.Thread(target=lambda: statuses.append(client.ask("GET", ISSUES).status_code))
            for _ in range(3)
        ]
        for thread in asking:
            thread.start()
    for thread in asking:
        thread.join()
    assert sorted(set(statuses) | {200}) in ([200], [200, 403])


def test_pages_hold_at_most_a_hundred_and_lead_to_one_another(
    client: Client, repository: RepositoryDouble
) -> None:
    for number in range(205):
        repository.open_issue(f"issue {number}")
    seen, path, pages = [], f"{ISSUES}?per_page=500&state=all", 0
    while path:
        answer = client.ask("GET", path)
        seen += [one["number"] for one in answer.json()]
        path = answer.links.get("next", {}).get("url", "").removeprefix(client.url)
        pages += 1
    assert (pages, sorted(seen)) == (3, list(range(1, 206)))
    assert len(client.get(ISSUES)) == 30


def test_planned_faults_hit_the_request_they_name(client: Client, hub: GitHubDouble) -> None:
    hub.faults.append(Fault(502, arrived=True, path=".*/issues"))
    hub.faults.append(Fault(500, method="GET", path=".*/labels"))
    assert client.ask("POST", ISSUES, {"title": "a"}).status_code == 502
    assert len(client.get(ISSUES)) == 1  # the work was done all the same
    assert client.ask("GET", "/repos/octo/compiler/labels").status_code == 500
    assert client.get("/repos/octo/compiler/labels") == []


def test_what_github_does_not_describe_fails_the_test(tmp_path: Path) -> None:
    def ask_nonsense() -> None:
        with GitHubDouble(tmp_path) as hub:
            hub.repository("octo/compiler")
            client = as_installation(hub, "octo")
            assert client.ask("POST", ISSUES, {"title": "a", "labelz": []}).status_code == 422

    with pytest.raises(AssertionError, match="labelz"):
        ask_nonsense()
