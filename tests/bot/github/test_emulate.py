"""A second witness, written by others: the emulator of GitHub's API that `tests/emulate/install.py` installs.

It knows Apps, installations' tokens and their narrowing, issues, comments, labels, check runs, contents and
git data, and signs deliveries. It does not know pull requests' files, reactions, statuses or conditional
requests.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bot.errors import RefusalError
from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import PROPOSER, READER, REPORTER
from bot.github.limits import marker
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import OutboxQueue
from bot.github.rate_limiter import RateLimiter
from bot.github.reader import Reader
from bot.github.requests import Request
from bot.store.outbox import ClaimedEffect, EffectDraft
from bot.webhooks.signature import HEADER, verify
from bot.worker import Worker
from tests.bot.github import app_kit
from tests.bot.github.outbox_kit import START, Clock, campaign, database, post, row
from tests.emulate import install

pytestmark = pytest.mark.skipif(bool(install.lacking()), reason=install.lacking() or "it is here")

NAME, OTHER, SECRET = "octo/compiler", "octo/other", "s3cret"
GRANTED = {
    "contents": "write",
    "checks": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
}
SERVE = Path(install.__file__).with_name("serve.mjs")


class WebhookReceiver:
    """Listens for deliveries: (event, body, signature)."""

    def __init__(self) -> None:
        self.heard: queue.Queue[tuple[str, bytes, str | None]] = queue.Queue()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.heard.put((self.headers["x-github-event"], body, self.headers[HEADER]))
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/webhooks/github"


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    made = WebhookReceiver()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture(scope="module")
def url(receiver: WebhookReceiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    seed = tmp_path_factory.mktemp("emulate") / "seed.json"
    seed.write_text(json.dumps({"github": world(receiver.url)}))
    module = install.folder() / "node_modules" / "emulate" / "dist" / "api.js"
    with subprocess.Popen(
        ["node", SERVE, module, seed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        assert served.stdin is not None
        yield served.stdout.readline().strip()
        served.stdin.close()


def world(webhook: str) -> dict[str, Any]:
    installation = {"installation_id": 4711, "account": "octo", "permissions": GRANTED}
    app = {
        "app_id": int(app_kit.APP_ID),
        "slug": "assay-test",
        "name": "Assay",
        "private_key": app_kit.pem(),
        "permissions": GRANTED,
        "events": ["push", "issues", "issue_comment", "pull_request", "check_run"],
        "webhook_url": webhook,
        "webhook_secret": SECRET,
        "installations": [installation | {"repository_selection": "all"}],
    }
    repositories = [{"owner": "octo", "name": name.partition("/")[2]} for name in (NAME, OTHER)]
    return {"users": [{"login": "octo"}, {"login": "ada"}], "repos": repositories, "apps": [app]}


@pytest.fixture
def github_api(url: str) -> Iterator[GitHubApi]:
    made = GitHubApi(app_kit.credentials(), url)
    yield made
    made.close()


def test_the_app_signs_in_and_sees_itself(github_api: GitHubApi) -> None:
    reader = Reader(github_api)
    assert reader.login() == "assay-test[bot]"
    assert [(one.id, one.account, dict(one.permissions)) for one in reader.installations()] == [
        (4711, "octo", GRANTED)
    ]
    facts = reader.repository(NAME)
    assert (facts.full_name, facts.default_branch) == (NAME, "main")
    assert len(reader.branch_head(NAME, "main")) == 40
    assert reader.permission(NAME, "octo") == "admin"


def test_a_readers_token_writes_nothing_and_a_proposers_reaches_one_repository(github_api: GitHubApi) -> None:
    issue = Request("POST", f"/repos/{NAME}/issues", {"title": "t"})
    with pytest.raises(RefusalError):
        github_api.client(NAME, READER).send(issue, "issues=write")
    assert github_api.client(NAME, REPORTER).send(issue).status == 201
    proposer = github_api.client(NAME, PROPOSER)
    head = proposer.get(f"/repos/{NAME}/git/ref/heads/main")["object"]["sha"]
    proposer.send(Request("POST", f"/repos/{NAME}/git/refs", {"ref": "refs/heads/ours", "sha": head}))
    assert Reader(github_api).branch_head(NAME, "ours") == head
    with pytest.raises(RefusalError):
        proposer.send(Request("POST", f"/repos/{OTHER}/git/refs", {"ref": "refs/heads/ours", "sha": head}))


def key(letter: str) -> str:
    return letter * 32


def draft(kind: str, letter: str, payload: dict[str, Any], **fields: Any) -> EffectDraft:
    if "body" in payload:
        payload = payload | {"body": f"{payload['body']}\n\n{marker(key(letter))}\n"}
    return EffectDraft(kind, key(letter), NAME, payload, **fields)


def test_from_the_outbox_to_the_emulator(url: str, receiver: WebhookReceiver, tmp_path: Path) -> None:
    store, clock = database(tmp_path), Clock()
    campaign(store, target=NAME)
    github_api = GitHubApi(app_kit.credentials(), url, rate_limiter=RateLimiter(store, gap_s=0))
    publisher = Worker(OutboxQueue(store, GitHubSink(github_api), clock, DryRunSink(tmp_path / "outbox")))
    head = Reader(github_api).branch_head(NAME, "main")
    output = {"title": "Running", "summary": "…"}
    run = {
        "name": "assay",
        "head_sha": head,
        "status": "in_progress",
        "external_id": key("c"),
        "output": output,
    }
    post(
        store,
        draft("issue", "i", {"title": "Relu is wrong", "body": "NaN", "labels": ["assay"]}, signature="relu"),
        draft("sticky", "s", {"body": "seen"}, depends_on=key("i"), editable=True),
        draft("labels", "l", {"labels": ["assay", "bug"]}, depends_on=key("i")),
        draft("check_run", "c", run, editable=True),
    )
    while publisher.run_once():
        pass
    number = row(store, key("i")).number
    done = run | {
        "status": "completed",
        "conclusion": "neutral",
        "output": {"title": "Done", "summary": "fine"},
    }
    post(
        store,
        draft("sticky", "s", {"body": "seen again"}, depends_on=key("i"), editable=True),
        draft("check_run", "c", done, editable=True),
        draft(
            "issue_state", "t", {"state": "closed", "state_reason": "completed"}, number=number, editable=True
        ),
    )
    while publisher.run_once():
        pass
    client = github_api.client(NAME, REPORTER)
    (comment,) = client.get(f"/repos/{NAME}/issues/{number}/comments")
    assert comment["body"].startswith("seen again")
    runs = client.get(f"/repos/{NAME}/commits/{head}/check-runs")["check_runs"]
    assert [(one["external_id"], one["conclusion"]) for one in runs] == [(key("c"), "neutral")]
    assert number is not None
    facts = Reader(github_api).issue(NAME, number)
    assert (facts.state, facts.state_reason, facts.labels) == ("closed", "completed", ("assay", "bug"))
    assert [one.number for one in Reader(github_api).search_issues(NAME, "Relu")] == [number]
    sink = GitHubSink(github_api)
    found = sink.find(ClaimedEffect(key("c"), "check_run", NAME, run, START, False, True, 1))
    assert found is not None
    assert found.remote_id == row(store, key("c")).remote_id
    github_api.close()
    store.close()
    events: set[str] = set()
    while not {"issues", "issue_comment"} <= events:
        event, body, signed = receiver.heard.get(timeout=600)
        assert verify([SECRET.encode()], body, signed)
        events.add(event)
