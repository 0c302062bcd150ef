"""PyGithub's methods over our client: no request goes past it, none is needless, no answer is trusted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from github.Requester import Requester

from bot.errors import InternalError
from bot.github.github_api import GitHubApi
from bot.github.identity import READER, Credentials
from bot.github.limits import PER_PAGE
from bot.github.live_sink import GitHubSink
from bot.github.reader import Reader
from bot.github.requester import ApiRequester, raw
from bot.github.responses import UnexpectedResponseError
from bot.store.outbox import ClaimedEffect
from tests.bot.github.outbox_kit import START
from tests.github import operations
from tests.github.double import GitHubDouble
from tests.github.server import Fault

TARGET = "octo/compiler"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path) as made:
        made.repository(TARGET)
        yield made


@pytest.fixture
def api(github: GitHubDouble) -> Iterator[GitHubApi]:
    made = GitHubApi(Credentials(token=github.token("octo")), github.url, timeout_s=5)
    yield made
    made.close()


def test_every_road_to_the_network_is_ours() -> None:
    sends = {
        name
        for name, one in vars(Requester).items()
        if inspect.isfunction(one) and not name.startswith("_") and "_Requester__request" in _names(one)
    }
    makers = {"withAuth", "withLazy", "withApiVersion"}  # they would return a requester of PyGithub
    assert {"requestJson", "getStream"} <= sends
    assert sends | makers | {"requestJsonAndCheck"} <= set(vars(ApiRequester))


def _names(function: Callable[..., object]) -> str:
    return " ".join(function.__code__.co_names)


def test_a_method_that_needs_another_road_is_refused(api: GitHubApi) -> None:
    repository = api.client(TARGET, READER).api().repository(TARGET)
    with pytest.raises(InternalError, match="past Assay's rate limits"):
        repository.update()


def test_items_are_read_a_page_at_a_time_and_never_again(api: GitHubApi, github: GitHubDouble) -> None:
    record = github.repository(TARGET).record
    for number in range(PER_PAGE + 1):
        operations.new_issue(github.hub, record, record.owner, f"{number}", None)
    repository = api.client(TARGET, READER).api().repository(TARGET)
    found = [raw(one) for one in repository.get_issues(state="all", direction="asc")]
    assert [one["number"] for one in found] == list(range(1, PER_PAGE + 2))
    assert len(github.seen) == 2


LISTS: dict[str, Callable[[Reader], object]] = {
    "pulls": lambda reader: reader.pulls(TARGET),
    "search": lambda reader: reader.search_issues(TARGET, "relu"),
}
OBJECTS: dict[str, Callable[[Reader], object]] = {
    "repository": lambda reader: reader.repository(TARGET),
    "branch": lambda reader: reader.branch_head(TARGET, "main"),
    "pull": lambda reader: reader.pull(TARGET, 1),
    "issue": lambda reader: reader.issue(TARGET, 1),
    "login": lambda reader: reader.login(),
}
WRONG = ["<h1>Welcome</h1>", "3", '{"a": 1}', "null", "{}", '{"_links": 1}', '{"items": 1}']


@pytest.mark.parametrize("what", [*LISTS, *OBJECTS])
def test_a_wrong_answer_is_tried_again(what: str, api: GitHubApi, github: GitHubDouble) -> None:
    more = ["[null]", '["a"]', "[{}]", '[{"_links": 1}]'] if what in LISTS else ["[]"]
    for count, body in enumerate([*WRONG, *more], start=1):
        github.faults.append(Fault(200, {}, body, method="GET", path="/.*"))
        with pytest.raises(UnexpectedResponseError):
            (LISTS | OBJECTS)[what](Reader(api))
        assert len(github.seen) == count


@pytest.mark.parametrize(("kind", "remote"), [("issue", ""), ("sticky", ""), ("sticky", "7")])
def test_a_write_with_a_wrong_answer_may_have_arrived(
    kind: str, remote: str, api: GitHubApi, github: GitHubDouble
) -> None:
    payload = {"body": "text"} | ({"title": "t"} if kind == "issue" else {})
    effect = ClaimedEffect("k" * 32, kind, TARGET, payload, START, True, False, 1, number=1, remote_id=remote)
    for count, body in enumerate([*WRONG, "[]"], start=1):
        github.faults.append(Fault(200, {}, body))
        with pytest.raises(UnexpectedResponseError):
            GitHubSink(api).send(effect)
        assert len(github.seen) == count, "the answer is not completed by another request"
