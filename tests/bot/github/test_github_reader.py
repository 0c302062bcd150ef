"""The reader over real HTTP, against a GitHub on real git."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.errors import RefusalError
from bot.github.doctor import run_checks
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.rate_limiter import RateLimiter
from bot.github.reader import Reader
from bot.github.responses import NotFoundError
from tests.bot.github.outbox_kit import database
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble

NAME = "octo/compiler"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path) as made:
        yield made


@pytest.fixture
def repository(github: GitHubDouble) -> RepositoryDouble:
    made = github.repository(NAME)
    made.commit({"op.cc": "1\n", "gone.cc": "x\n"})
    return made


@pytest.fixture
def hub(github: GitHubDouble, tmp_path: Path) -> Iterator[GitHubApi]:
    store = database(tmp_path)
    who = Credentials(app_id=github.app_id, private_key=github.private_key)
    made = GitHubApi(who, github.url, rate_limiter=RateLimiter(store, gap_s=0), timeout_s=30)
    yield made
    made.close()
    store.close()


@pytest.fixture
def reader(hub: GitHubApi) -> Reader:
    return Reader(hub)


def test_a_repository_and_its_branches(reader: Reader, repository: RepositoryDouble) -> None:
    facts = reader.repository(NAME)
    assert (facts.full_name, facts.default_branch, facts.archived, facts.has_issues) == (
        NAME,
        "main",
        False,
        True,
    )
    assert reader.branch_head(NAME, "main") == repository.head()
    with pytest.raises(NotFoundError, match="Not Found"):
        reader.branch_head(NAME, "no/such/branch")
    with pytest.raises(RefusalError, match="the App is not installed there"):
        reader.repository("octo/other")


def test_pull_requests(reader: Reader, repository: RepositoryDouble) -> None:
    first = repository.open_pull({"op.cc": "2\n", "new.cc": "n\n"}, author="ada")
    second = repository.open_pull({"op.cc": "3\n"}, branch="other", author="ada")
    facts = reader.pull(NAME, first)
    assert (facts.number, facts.author, facts.base, facts.state) == (first, "ada", repository.head(), "open")
    assert (facts.base_ref, facts.draft, facts.bot) == ("main", False, False)
    assert {one.number for one in reader.pulls(NAME)} == {first, second}
    merged = repository.merge_pull(first)
    again = reader.pull(NAME, first)
    assert (again.state, again.merge_commit) == ("merged", merged)
    repository.close_pull(second)
    assert reader.pulls(NAME) == []


def test_issues_comments_and_search(
    reader: Reader, repository: RepositoryDouble, github: GitHubDouble
) -> None:
    number = repository.open_issue("Relu is wrong", "NaN for half", author="ada", labels=("bug",))
    facts = reader.issue(NAME, number)
    assert (facts.title, facts.body, facts.author, facts.labels) == (
        "Relu is wrong",
        "NaN for half",
        "ada",
        ("bug",),
    )
    repository.close_issue(number, reason="not_planned")
    closed = reader.issue(NAME, number)
    assert (closed.state, closed.state_reason) == ("closed", "not_planned")
    assert [one.number for one in reader.search_issues(NAME, "relu wrong")] == [number]
    injected = 'Relu" repo:octo/secret -label:bug OR'
    assert reader.search_issues(NAME, injected) == []
    requested = next(seen.path for seen in reversed(github.seen) if "search" in seen.path)
    assert "q=Relu+repo+octo+secret+label+bug+repo%3Aocto%2Fcompiler+is%3Aissue" in requested
    assert reader.search_issues(NAME, "relu", state="open") == []
    comment = repository.comment(number, "eve", "/assay help")
    reported = reader.comments_since(NAME, github.hub.world.clock() - timedelta(hours=1))
    assert [(one.id, one.number, one.author, one.body, one.on_pull) for one in reported] == [
        (comment, number, "eve", "/assay help", False)
    ]


@pytest.mark.parametrize("role", ["admin", "maintain", "write", "triage", "read"])
def test_who_may_do_what(role: str, reader: Reader, repository: RepositoryDouble) -> None:
    repository.collaborator("ada", role)
    assert reader.permission(NAME, "ada") == role
    assert reader.permission(NAME, "no-such-user") == "none"


def test_the_app_its_installations_and_deliveries(
    reader: Reader, repository: RepositoryDouble, github: GitHubDouble
) -> None:
    app = reader.app()
    assert (app.slug, app.permissions["checks"]) == (github.app_slug, "write")
    assert reader.login() == github.bot
    (one,) = reader.installations()
    assert (one.account, one.suspended) == ("octo", False)
    assert [each.full_name for each in reader.installation_repositories(one.id)] == [NAME]


def test_asking_again_costs_nothing(
    reader: Reader, repository: RepositoryDouble, github: GitHubDouble
) -> None:
    number = repository.open_pull({"op.cc": "2\n"}, author="ada")
    first, again = reader.pull(NAME, number), reader.pull(NAME, number)
    assert first == again
    requested = [seen for seen in github.seen if seen.path.startswith(f"/repos/{NAME}/pulls/{number}")]
    assert ["if-none-match" in seen.headers for seen in requested] == [False, True]
    repository.push_pull(number, {"op.cc": "4\n"})
    assert reader.pull(NAME, number).head != first.head


def test_a_token_reads_too_but_is_no_app(github: GitHubDouble, repository: RepositoryDouble) -> None:
    hub = GitHubApi(Credentials(token=github.token("octo")), github.url)
    reader = Reader(hub)
    assert (reader.is_app, reader.login(), reader.branch_head(NAME, "main")) == (
        False,
        "octo",
        repository.head(),
    )
    with pytest.raises(RefusalError, match="a token belongs to no App"):
        reader.installations()
    hub.close()


def test_the_doctor_over_http(reader: Reader, repository: RepositoryDouble, github: GitHubDouble) -> None:
    health = run_checks(reader, github.url, github.hub.world.clock())
    reported = {check_result.name: check_result for check_result in health.check_results}
    assert reported["permission checks"].state == "ok"
    assert health.installations[0].repositories == (NAME,)
