"""Tokens: as narrow as their job, kept while they are good, given back at the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.errors import RefusalError, SettingsError
from bot.github.github_api import GitHubApi
from bot.github.identity import (
    READER,
    REFRESH_MARGIN,
    REPORTER,
    TOKEN_SCOPES,
    Credentials,
    TokenScope,
)
from bot.github.requests import Request
from tests.bot.github import app_kit
from tests.bot.github.fake_github import TARGET, FakeGitHub
from tests.bot.github.outbox_kit import Clock


def github_api(
    world: FakeGitHub, clock: Clock | None = None, credentials: Credentials | None = None
) -> GitHubApi:
    return GitHubApi(credentials or app_kit.credentials(), transport=world, clock=clock or Clock())


def use_token(its: GitHubApi, scope: TokenScope) -> object:
    return its.client(TARGET, scope).get(f"/repos/{TARGET}")["full_name"]


@pytest.mark.parametrize("scope", TOKEN_SCOPES, ids=lambda scope: scope.name)
def test_a_token_may_do_what_its_job_needs_and_no_more(scope: TokenScope) -> None:
    world = FakeGitHub()
    assert use_token(github_api(world), scope) == TARGET
    requested = world.tokens[-1]
    assert requested["permissions"] == dict(scope.permissions)
    assert requested["repository_ids"] == [7]
    locator, *_ = world.tokens
    assert locator["permissions"] == {"metadata": "read"}, "what finds the repository reads names only"


def test_nobody_may_do_everything() -> None:
    writes = [
        {name for name, level in scope.permissions.items() if level == "write"} for scope in TOKEN_SCOPES
    ]
    assert not writes[TOKEN_SCOPES.index(READER)]
    assert all("contents" not in may or "issues" not in may for may in writes)


def test_a_token_is_kept_for_its_job_and_renewed_before_it_ends() -> None:
    world, clock = FakeGitHub(), Clock()
    world.expires = clock.now + timedelta(hours=1)
    its = github_api(world, clock)
    for scope in (READER, REPORTER, READER):
        use_token(its, scope)
    assert len(world.tokens) == 3, "one for each scope, and one that finds the repository"
    assert sum(path.endswith("/installation") for _, path in world.seen) == 1
    clock.now += timedelta(hours=1) - REFRESH_MARGIN
    use_token(its, READER)
    assert len(world.tokens) == 5
    assert sum(path.endswith("/installation") for _, path in world.seen) == 2, "after a while it asks again"


def test_what_was_not_granted_is_not_asked_for() -> None:
    world = FakeGitHub(granted={"issues": "write", "metadata": "read", "pull_requests": "read"})
    use_token(github_api(world), REPORTER)
    assert world.tokens[-1]["permissions"] == {"issues": "write", "metadata": "read", "pull_requests": "read"}


def test_tokens_are_given_back() -> None:
    world = FakeGitHub()
    its = github_api(world)
    use_token(its, READER)
    use_token(its, REPORTER)
    its.close()
    assert world.revoked == 3


def test_where_it_is_not_installed_nothing_is_possible() -> None:
    world = FakeGitHub()
    its = github_api(world)
    with pytest.raises(RefusalError, match="the App is not installed there"):
        its.client("acme/other", READER)
    assert its.git_token("acme/other") is None
    assert its.git_token(TARGET) == "ghs_2"
    assert world.tokens[-1]["repository_ids"] == [7]


def test_a_token_of_a_person_is_used_as_it_is() -> None:
    world = FakeGitHub()
    its = github_api(world, credentials=Credentials(token="ghp_1"))
    assert use_token(its, REPORTER) == TARGET
    assert (its.is_app, its.identity.account(TARGET), its.git_token(TARGET)) == (False, "token", "ghp_1")
    with pytest.raises(RefusalError, match="a token belongs to no App"):
        _ = its.app
    its.close()
    assert (world.tokens, world.revoked) == ([], 0)


def test_a_refused_token_is_made_anew_once() -> None:
    world = FakeGitHub(trouble=["token ended"])
    its = github_api(world)
    request = Request("POST", f"/repos/{TARGET}/issues", {"title": "t"})
    assert its.client(TARGET, REPORTER).send(request).data["number"] == 1
    assert [dict(REPORTER.permissions) == token["permissions"] for token in world.tokens].count(True) == 2


def test_a_key_that_is_none_is_a_setting_to_mend() -> None:
    its = github_api(FakeGitHub(), credentials=Credentials(app_id="1", private_key="-----BEGIN NOTHING-----"))
    with pytest.raises(SettingsError, match="ASSAY_GITHUB_PRIVATE_KEY_FILE holds no private key"):
        its.client(TARGET, READER)
