"""Webhooks: signed, delivered, lost, duplicated, reordered and redelivered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bot.webhooks.signature import HEADER, verify
from tests.github.client import as_app
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble


class Service:
    """The receiver of webhooks."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []
        self.status = 202
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name above)
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert verify([b"s3cret"], body, self.headers[HEADER])
                outer.got.append((self.headers["x-github-event"], self.headers["x-github-delivery"]))
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/webhooks/github"

    @property
    def pushes(self) -> list[str]:
        return [guid for event, guid in self.got if event == "push"]


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def subscribed(hub: GitHubDouble, repository: RepositoryDouble, service: Service) -> Service:
    hub.deliveries.secret = "s3cret"
    hub.settle()
    while len(hub.deliveries):
        hub.deliveries.pop()
    hub.webhook_url = service.url
    return service


def test_deliveries_are_signed_and_come_in_order(
    hub: GitHubDouble, repository: RepositoryDouble, subscribed: Service
) -> None:
    for number in range(3):
        repository.commit({"op.cc": f"{number}\n"})
    hub.settle()
    sent = [one for one in hub.deliveries.log if one.status_code == 202]
    assert [(one.event, one.guid) for one in sent] == subscribed.got
    assert len(subscribed.pushes) == 3


def test_what_waits_is_delivered_once_somebody_listens(
    hub: GitHubDouble, repository: RepositoryDouble, subscribed: Service
) -> None:
    hub.webhook_url = ""
    repository.commit({"op.cc": "3\n"})
    assert subscribed.pushes == []
    hub.webhook_url = subscribed.url
    hub.settle()
    assert len(subscribed.pushes) == 1


def test_mischief_is_the_same_for_the_same_seed(
    hub: GitHubDouble, repository: RepositoryDouble, subscribed: Service
) -> None:
    heard_each: list[list[str]] = []
    for _ in range(2):
        subscribed.got.clear()
        begun = len(hub.deliveries.log)
        hub.mischief(drop=0.2, double=0.3, window=4, seed=3)
        for number in range(10):
            repository.commit({"op.cc": f"{number}{len(heard_each)}\n"})
        hub.settle()
        order = [one.guid for one in hub.deliveries.log[begun:]]
        heard_each.append([str(order.index(guid)) for _, guid in subscribed.got])
    assert heard_each[0] == heard_each[1]
    assert len(set(heard_each[0])) < 20  # some were lost
    assert len(heard_each[0]) > len(set(heard_each[0]))  # some came twice
    assert heard_each[0] != sorted(heard_each[0], key=int)  # and not in order


def test_what_failed_is_listed_and_can_be_had_again(
    hub: GitHubDouble, repository: RepositoryDouble, subscribed: Service
) -> None:
    hub.mischief(drop=1.0)
    repository.commit({"op.cc": "lost\n"})
    hub.mischief()
    subscribed.status = 503
    repository.commit({"op.cc": "refused\n"})
    hub.settle()
    subscribed.status = 202
    subscribed.got.clear()
    app = as_app(hub)
    failed = [one for one in app.get("/app/hook/deliveries?status=failure") if one["event"] == "push"]
    assert [one["status_code"] for one in failed] == [503, 0]
    assert (
        app.get(f"/app/hook/deliveries/{failed[0]['id']}")["request"]["payload"]["ref"] == "refs/heads/main"
    )
    for one in failed:
        app.post(f"/app/hook/deliveries/{one['id']}/attempts")
    hub.settle()
    assert subscribed.pushes == [one["guid"] for one in failed]
    again = app.get("/app/hook/deliveries?status=success&per_page=100")
    assert [one["redelivery"] for one in again[:2]] == [True, True]


def test_deliveries_are_listed_by_cursor(hub: GitHubDouble, repository: RepositoryDouble) -> None:
    while len(hub.deliveries):
        hub.deliveries.pop()
    app, path, seen = as_app(hub), "/app/hook/deliveries?per_page=2", []
    while path:
        answer = app.ask("GET", path)
        seen += [one["id"] for one in answer.json()]
        path = answer.links.get("next", {}).get("url", "").removeprefix(hub.url)
    assert seen == sorted((one.id for one in hub.deliveries.log), reverse=True)


def test_only_what_was_asked_for_is_told(hub: GitHubDouble, repository: RepositoryDouble) -> None:
    while len(hub.deliveries):
        hub.deliveries.pop()
    repository.installation.events.remove("push")
    repository.commit({"op.cc": "3\n"})
    assert [hub.deliveries.pop().event for _ in range(len(hub.deliveries))] == ["check_suite"]
    hub.suspend("octo")
    repository.commit({"op.cc": "4\n"})
    assert hub.deliveries.pop("installation").action == "suspend"
    with pytest.raises(IndexError, match="no delivery of push"):
        hub.deliveries.pop("push")


def test_the_webhooks_address_can_be_read_and_changed(hub: GitHubDouble) -> None:
    app = as_app(hub)
    app.patch("/app/hook/config", {"url": "https://assay.example/webhooks/github"})
    assert app.get("/app/hook/config")["url"] == hub.webhook_url == "https://assay.example/webhooks/github"
    hub.webhook_url = ""
