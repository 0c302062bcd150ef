"""The live sink over real HTTP, against a server that holds every request to GitHub's description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from bot.errors import AssayError, InfrastructureError, InternalError, RefusalError
from bot.github.dry_run import DryRun
from bot.github.hub import Hub
from bot.github.identity import Credentials
from bot.github.limits import ThrottledError
from bot.github.live import GitHub
from bot.github.publisher import FIRST_WAIT, Publisher
from bot.reports import render
from bot.store.outbox import Claimed, Draft
from tests.bot.github import app_kit
from tests.bot.github.outbox_kit import START, Clock, campaign, check_run, database, issue, post, row
from tests.bot.reports import sample
from tests.github_api.server import ME, FakeGitHub, Fault


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with FakeGitHub() as made:
        yield made
    assert made.violations == []


def sink(server: FakeGitHub, credentials: Credentials | None = None) -> GitHub:
    who = credentials or app_kit.credentials()
    return GitHub(Hub(who, server.url, timeout_s=5, clock=Clock()))


@pytest.fixture
def github(server: FakeGitHub) -> Iterator[GitHub]:
    made = sink(server)
    yield made
    made.close()


def claimed(draft: Draft, resumed: bool = False) -> Claimed:
    return Claimed(draft.key, draft.kind, draft.target, draft.payload, START, False, resumed, 1)


def test_issues_and_check_runs_are_created_as_dry_run_writes_them(server: FakeGitHub, github: GitHub) -> None:
    drafts = render.effects(sample.report(), sample.config("auto"))
    for draft in drafts:
        github.send(claimed(draft))
    posts = [(seen.path, seen.body) for seen in server.seen if seen.path.startswith("/repos") and seen.body]
    suffix = {"issue": "issues", "check_run": "check-runs"}
    assert posts == [(f"/repos/{sample.TARGET}/{suffix[d.kind]}", d.payload) for d in drafts]
    assert server.seen[-1].headers["authorization"] == "token ghs_installation"
    assert server.seen[-1].headers["user-agent"].startswith("assay")


def test_what_is_there_is_found_by_marker_and_author(server: FakeGitHub, github: GitHub) -> None:
    effect = claimed(issue("a"))
    quoting = {
        "title": "quote",
        "body": issue("a").payload["body"],
        "user": {"login": "somebody"},
        "number": 1,
    }
    others = [{"title": "t", "body": None, "user": {"login": ME}, "number": n} for n in range(2, 250)]
    server.issues[sample.TARGET] = [quoting, *others]
    assert github.find(effect) is None
    sent = github.send(effect)
    assert github.find(effect) == sent
    assert sent.number == 250
    asked = next(seen for seen in server.seen if seen.method == "GET" and "/issues" in seen.path)
    assert "since=2026-11-20T11%3A50%3A00Z" in asked.path


def test_check_runs_are_found_by_their_external_id(server: FakeGitHub, github: GitHub) -> None:
    assert github.find(claimed(check_run("k"))) is None
    github.send(claimed(check_run("j")))
    sent = github.send(claimed(check_run("k")))
    assert github.find(claimed(check_run("k"))) == sent
    assert sent.url == f"https://github.com/{sample.TARGET}/runs/2"


def test_an_app_signs_in_as_the_targets_installation(server: FakeGitHub) -> None:
    app = sink(server)
    app.send(claimed(issue("a")))
    app.send(claimed(issue("b")))
    assert app.find(claimed(issue("b"))) is not None
    installed = [seen for seen in server.seen if seen.path.endswith("/installation")]
    assert len(installed) == 1
    assert len(server.posts("/access_tokens")) == 1
    signed = installed[0].headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(
        signed, app_kit.key().public_key(), algorithms=["RS256"], options={"verify_iat": False}
    )
    assert claims["iss"] == app_kit.APP_ID
    assert server.posts("/issues")[0].headers["authorization"] == "token ghs_installation"


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
        (Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(START.timestamp()) + 33)},
               {"message": "API rate limit exceeded"}), ThrottledError, "tried again in 33 s"),
    ],
)  # fmt: skip
def test_every_answer_becomes_an_error_that_says_what_to_do(
    fault: Fault, error: type[AssayError], words: str, server: FakeGitHub, github: GitHub
) -> None:
    server.faults.append(fault)
    with pytest.raises(error, match=re.escape(words)) as caught:
        github.send(claimed(issue("a")))
    assert isinstance(caught.value, error)
    assert isinstance(caught.value, ThrottledError) is (error is ThrottledError)
    assert len(server.posts("/issues")) == 1  # a POST is never repeated by itself


def test_a_token_that_ends_in_the_middle_is_renewed_once(server: FakeGitHub, github: GitHub) -> None:
    server.faults.append(Fault(401))
    assert github.send(claimed(issue("a"))).number == 1
    assert (len(server.posts("/access_tokens")), len(server.posts("/issues"))) == (2, 2)
    server.faults += [Fault(401), Fault(401)]
    with pytest.raises(InfrastructureError, match="does not accept our credentials"):
        github.send(claimed(issue("b")))


@pytest.mark.parametrize(
    ("fault", "asked"),
    [(Fault(502, arrived=True), True), (Fault(502), True), (Fault(0, arrived=True), True),
     (Fault(429, {"retry-after": "1"}), False)],
)  # fmt: skip
@pytest.mark.parametrize("draft", [issue("a"), check_run("k")], ids=["issue", "check_run"])
def test_the_publisher_makes_it_once_over_a_bad_line(
    fault: Fault, asked: bool, draft: Draft, server: FakeGitHub, github: GitHub, tmp_path: Path
) -> None:
    store, clock = database(tmp_path), Clock()
    campaign(store)
    post(store, draft)
    publisher = Publisher(store, github, clock, DryRun(tmp_path / "outbox"))
    server.faults.append(fault)
    assert publisher.run_once()
    clock.now += FIRST_WAIT
    assert publisher.run_once()
    assert row(store, draft.key).state == "sent"
    made = [*server.issues.get(sample.TARGET, []), *server.check_runs.get(sample.TARGET, [])]
    assert len(made) == 1
    assert row(store, draft.key).url == made[0]["html_url"]
    assert any(seen.method == "GET" and "installation" not in seen.path for seen in server.seen) is asked


def test_live_needs_credentials() -> None:
    with pytest.raises(InternalError, match="without a token"):
        Credentials()
