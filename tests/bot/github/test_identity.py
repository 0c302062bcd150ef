"""Tokens: as narrow as their job, kept while they are good, given back at the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.errors import RefusalError, SettingsError
from bot.github.hub import Hub
from bot.github.identity import JOBS, PROPOSER, READER, RENEW_BEFORE, REPORTER, Credentials, Job
from bot.github.requests import Request
from tests.bot.github import app_kit
from tests.bot.github.outbox_kit import Clock
from tests.bot.github.world import TARGET, World


def hub(world: World, clock: Clock | None = None, credentials: Credentials | None = None) -> Hub:
    return Hub(credentials or app_kit.credentials(), transport=world, clock=clock or Clock())


def look(its: Hub, job: Job) -> object:
    return its.client(TARGET, job).get(f"/repos/{TARGET}")["full_name"]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_token_may_do_what_its_job_needs_and_no_more(job: Job) -> None:
    world = World()
    assert look(hub(world), job) == TARGET
    asked = world.tokens[-1]
    assert asked["permissions"] == dict(job.permissions)
    assert asked.get("repository_ids") == ([7] if job is PROPOSER else None)


def test_nobody_may_do_everything() -> None:
    writes = [{name for name, level in job.permissions.items() if level == "write"} for job in JOBS]
    assert not writes[JOBS.index(READER)]
    assert all("contents" not in may or "issues" not in may for may in writes)


def test_a_token_is_kept_for_its_job_and_renewed_before_it_ends() -> None:
    world, clock = World(), Clock()
    world.expires = clock.now + timedelta(hours=1)
    its = hub(world, clock)
    for job in (READER, REPORTER, READER):
        look(its, job)
    assert len(world.tokens) == 2
    assert sum(path.endswith("/installation") for _, path in world.seen) == 1
    clock.now += timedelta(hours=1) - RENEW_BEFORE
    look(its, READER)
    assert len(world.tokens) == 3
    assert sum(path.endswith("/installation") for _, path in world.seen) == 2, "after a while it asks again"


def test_what_was_not_granted_is_not_asked_for() -> None:
    world = World(granted={"issues": "write", "metadata": "read", "pull_requests": "read"})
    look(hub(world), REPORTER)
    assert world.tokens[-1]["permissions"] == {"issues": "write", "metadata": "read", "pull_requests": "read"}


def test_tokens_are_given_back() -> None:
    world = World()
    its = hub(world)
    look(its, READER)
    look(its, REPORTER)
    its.close()
    assert world.revoked == 2


def test_where_it_is_not_installed_nothing_is_possible() -> None:
    its = hub(World())
    with pytest.raises(RefusalError, match="the App is not installed there"):
        its.client("acme/other", READER)
    assert its.git_token("acme/other") is None
    assert its.git_token(TARGET) == "ghs_1"


def test_a_token_of_a_person_is_used_as_it_is() -> None:
    world = World()
    its = hub(world, credentials=Credentials(token="ghp_1"))
    assert look(its, REPORTER) == TARGET
    assert (its.is_app, its.identity.account(TARGET), its.git_token(TARGET)) == (False, "token", "ghp_1")
    with pytest.raises(RefusalError, match="a token belongs to no App"):
        _ = its.app
    its.close()
    assert (world.tokens, world.revoked) == ([], 0)


def test_a_refused_token_is_made_anew_once() -> None:
    world = World(trouble=["token ended"])
    its = hub(world)
    request = Request("POST", f"/repos/{TARGET}/issues", {"title": "t"})
    assert its.client(TARGET, REPORTER).send(request).data["number"] == 1
    assert len(world.tokens) == 2


def test_a_key_that_is_none_is_a_setting_to_mend() -> None:
    its = hub(World(), credentials=Credentials(app_id="1", private_key="-----BEGIN NOTHING-----"))
    with pytest.raises(SettingsError, match="ASSAY_GITHUB_PRIVATE_KEY_FILE holds no private key"):
        its.client(TARGET, READER)
