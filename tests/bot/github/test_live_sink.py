"""The live sink over real HTTP, against a server that holds every request to GitHub's description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import jwt
import pytest

from bot.errors import AssayError, InfrastructureError, InternalError, RefusalError
from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.limits import ThrottledError
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import FIRST_WAIT, OutboxQueue
from bot.reports import renderer
from bot.store.outbox import ClaimedEffect, EffectDraft
from bot.worker import Worker
from tests.bot.github.outbox_kit import Clock, campaign, check_run, database, issue, post, row
from tests.bot.reports import sample_campaign
from tests.github import identity, operations
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble
from tests.github.server import Fault
from tests.github.state import wall_clock


@pytest.fixture
def clock() -> Clock:
    """Everybody's; it stands where the test began, as the App's signatures go by the machine's own."""
    return Clock(wall_clock())


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path, clock) as made:
        yield made


@pytest.fixture
def repository(server: GitHubDouble) -> RepositoryDouble:
    made = server.repository(sample_campaign.TARGET)
    made.commit({"op.cc": "1\n"}, quiet=True)
    return made


@pytest.fixture
def github(server: GitHubDouble, repository: RepositoryDouble, clock: Clock) -> Iterator[GitHubSink]:
    who = Credentials(app_id=server.app_id, private_key=server.private_key)
    made = GitHubSink(GitHubApi(who, server.url, timeout_s=5, clock=clock))
    yield made
    made.close()


def run(repository: RepositoryDouble, key: str = "k") -> EffectDraft:
    """A check run of the commit there is."""
    draft = check_run(key)
    return replace(draft, payload=draft.payload | {"head_sha": repository.head()})


def claimed(draft: EffectDraft, at: datetime | None = None) -> ClaimedEffect:
    return ClaimedEffect(
        draft.key, draft.kind, draft.target, draft.payload, at or wall_clock(), False, False, 1
    )


def test_issues_and_check_runs_are_created_as_dry_run_writes_them(
    server: GitHubDouble, github: GitHubSink, repository: RepositoryDouble
) -> None:
    drafts = [
        replace(draft, payload=draft.payload | {"head_sha": repository.head()})
        if draft.kind == "check_run"
        else draft
        for draft in renderer.draft_effects(sample_campaign.report(), sample_campaign.config("auto"))
    ]
    for draft in drafts:
        github.send(claimed(draft))
    posts = [seen for seen in server.seen if seen.path.startswith("/repos") and seen.body]
    suffix = {"issue": "issues", "check_run": "check-runs"}
    sent = [(f"/repos/{sample_campaign.TARGET}/{suffix[draft.kind]}", draft.payload) for draft in drafts]
    assert [(seen.path, seen.body) for seen in posts] == sent
    assert posts[-1].headers["authorization"].startswith("token ghs_")
    assert posts[-1].headers["user-agent"].startswith("assay")


def test_what_is_there_is_found_by_marker_and_author(
    server: GitHubDouble, github: GitHubSink, repository: RepositoryDouble, clock: Clock
) -> None:
    effect = claimed(issue("a"), clock.now)
    repository.open_issue("quote", issue("a").payload["body"], author="somebody")
    for number in range(2, 250):  # as so many requests would; nobody is told
        operations.new_issue(server.hub, repository.record, server.hub.identity.bot, f"{number}", None)
    assert github.find(effect) is None
    sent = github.send(effect)
    assert github.find(effect) == sent
    assert sent.number == 250
    requested = next(seen for seen in server.seen if seen.method == "GET" and "/issues" in seen.path)
    assert f"since={quote(f'{clock.now - timedelta(minutes=10):%Y-%m-%dT%H:%M:%SZ}')}" in requested.path


def test_check_runs_are_found_by_their_external_id(github: GitHubSink, repository: RepositoryDouble) -> None:
    assert github.find(claimed(run(repository))) is None
    github.send(claimed(run(repository, "j")))
    sent = github.send(claimed(run(repository)))
    assert github.find(claimed(run(repository))) == sent
    assert (sent.url or "").endswith(f"/runs/{repository.check_runs[1].id}")


def test_an_app_signs_in_as_the_targets_installation(server: GitHubDouble, github: GitHubSink) -> None:
    github.send(claimed(issue("a")))
    github.send(claimed(issue("b")))
    assert github.find(claimed(issue("b"))) is not None
    installed = [seen for seen in server.seen if seen.path.endswith("/installation")]
    assert len(installed) == 1
    signed = installed[0].headers["authorization"].removeprefix("Bearer ")
    reported = jwt.decode(
        signed,
        identity.key_pair().public_key(),
        algorithms=["RS256"],
        options={"verify_iat": False, "verify_exp": False},
    )
    assert reported["iss"] == server.app_id
    one = server.installation(sample_campaign.TARGET.partition("/")[0])
    assert {seen.path for seen in server.posts("/access_tokens")} == {
        f"/app/installations/{one.id}/access_tokens"
    }
    written = {seen.headers["authorization"] for seen in server.posts("/issues")}
    assert len(written) == 1, "one token for both"
    assert written.pop().startswith("token ghs_")


IN_33_S = "the time in 33 s"
LIMIT = {"message": "You have exceeded a secondary rate limit."}


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(403), RefusalError, "the App lacks a permission (issues=write)"),
        (Fault(403, {"x-accepted-github-permissions": "issues=write"}), RefusalError, "(issues=write)"),
        (Fault(404), RefusalError, "the App is not installed there. Install it"),
        (Fault(410), RefusalError, "issues switched off, or this one was deleted. Switch them on"),
        (Fault(422, body={"message": "Validation Failed", "errors": [{"message": "body is too long"}]}),
         RefusalError, "Validation Failed; body is too long"),
        (Fault(418), RefusalError, "GitHub answered 418"),
        (Fault(500), InfrastructureError, "GitHub answered 500"),
        (Fault(502, arrived=True), InfrastructureError, "GitHub answered 502"),
        (Fault(0), InfrastructureError, "GitHub did not answer: ConnectionError"),
        (Fault(429, {"retry-after": "7"}), ThrottledError, "tried again in 7 s"),
        (Fault(403, {"retry-after": "9"}, LIMIT), ThrottledError, "tried again in 9 s"),
        (Fault(403, {}, LIMIT), ThrottledError, "tried again in 60 s"),
        (Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": IN_33_S},
               {"message": "API rate limit exceeded"}), ThrottledError, "tried again in 33 s"),
    ],
)  # fmt: skip
def test_every_answer_becomes_an_error_that_says_what_to_do(
    fault: Fault, error: type[AssayError], words: str, server: GitHubDouble, github: GitHubSink, clock: Clock
) -> None:
    then = str(int(clock.now.timestamp()) + 33)
    headers = {name: value.replace(IN_33_S, then) for name, value in fault.headers.items()}
    server.faults.append(replace(fault, headers=headers))
    with pytest.raises(error, match=re.escape(words)) as caught:
        github.send(claimed(issue("a")))
    assert isinstance(caught.value, error)
    assert isinstance(caught.value, ThrottledError) is (error is ThrottledError)
    assert len(server.posts("/issues")) == 1  # a POST is never repeated by itself


def test_a_token_that_ends_in_the_middle_is_renewed_once(server: GitHubDouble, github: GitHubSink) -> None:
    server.faults.append(Fault(401))
    assert github.send(claimed(issue("a"))).number == 1
    reporters = [
        made for made in server.posts("/access_tokens") if "issues" in made.body.get("permissions", {})
    ]
    assert (len(reporters), len(server.posts("/issues"))) == (2, 2)
    server.faults.extend([Fault(401), Fault(401)])
    with pytest.raises(InfrastructureError, match="does not accept our credentials"):
        github.send(claimed(issue("b")))


@pytest.mark.parametrize(
    ("fault", "requested"),
    [(Fault(502, arrived=True), True), (Fault(502), True), (Fault(0, arrived=True), True),
     (Fault(429, {"retry-after": "1"}), False)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["issue", "check_run"])
def test_the_publisher_makes_it_once_over_a_bad_line(
    fault: Fault, requested: bool, kind: str, server: GitHubDouble, repository: RepositoryDouble,
    github: GitHubSink, clock: Clock, tmp_path: Path,
) -> None:  # fmt: skip
    store = database(tmp_path)
    draft = issue("a") if kind == "issue" else run(repository)
    campaign(store)
    post(store, draft, at=clock.now)
    publisher = Worker(OutboxQueue(store, github, clock, DryRunSink(tmp_path / "outbox")))
    server.faults.append(fault)
    assert publisher.run_once()
    clock.now += FIRST_WAIT
    assert publisher.run_once()
    assert row(store, draft.key).state == "sent"
    assert len(repository.issues) + len(repository.check_runs) == 1
    (url,) = [f"/issues/{one.number}" for one in repository.issues] + [
        f"/runs/{one.id}" for one in repository.check_runs
    ]
    assert (row(store, draft.key).url or "").endswith(f"{sample_campaign.TARGET}{url}")
    listed = [
        one for one in server.seen if one.method == "GET" and ("/issues" in one.path or "runs" in one.path)
    ]
    assert bool(listed) is requested


def test_live_needs_credentials() -> None:
    with pytest.raises(InternalError, match="without a token"):
        Credentials()
