"""A GitHub double: real HTTP, real git, validated against GitHub's OpenAPI description.

    with GitHubDouble(tmp_path) as hub:
        repository = hub.repository("octo/compiler")
        repository.commit({"op.cc": "1"})
        number = repository.open_pull({"op.cc": "2"}, author="ada")

`hub.url` is the value of ASSAY_GITHUB_API_URL, `hub.git_url` that of ASSAY_GIT_URL. Deliveries are sent to
`hub.webhook_url` once it is set; until then they wait for `hub.deliveries.pop()`. Leaving the block fails if
any request, response or payload did not match GitHub's description.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import tests.github.routes  # noqa: F401 - registers the operations
from tests.github import app_installations, git_http, server
from tests.github.core import GitHubCore
from tests.github.identity import APP_ID, SLUG, private_key
from tests.github.repository_double import RepositoryDouble
from tests.github.server import Fault, RecordedRequest
from tests.github.state import Clock, Installation, wall_clock
from tests.github.webhook_sender import Delivery, DeliveryFaults, WebhookSender

SECRET = "It's a Secret to Everybody"  # from GitHub's documentation


class GitHubDouble:
    """GitHub with its App and accounts.

    hub      its records, for tests that need more
    clock    its time; tokens and limits depend on it
    """

    app_id, app_slug, bot = str(APP_ID), SLUG, f"{SLUG}[bot]"

    def __init__(
        self, folder: Path, clock: Clock = wall_clock, secret: str = SECRET, *, below: str = ""
    ) -> None:
        """`below` is the path of the API: "" on github.com, /api/v3 on an Enterprise Server."""
        self.hub = GitHubCore(folder / "github", clock, secret)
        self.secret, self._below = secret, below
        self._api_server = server.ApiServer(self.hub, below)

    def __enter__(self) -> GitHubDouble:
        self._api_server.start()
        self.hub.webhook_sender.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hub.webhook_sender.stop()
        self._api_server.stop()
        if kind is None:
            assert self.violations == [], "\n".join(self.violations[:20])

    @property
    def url(self) -> str:
        """The URL of the API."""
        return self.hub.url

    @property
    def git_url(self) -> str:
        """Base URL for clones."""
        return self.hub.git_url

    @property
    def git_http_url(self) -> str:
        """The same over HTTP; private repositories require an installation's token."""
        return self.hub.url.removesuffix(self._below) + git_http.PREFIX.rstrip("/")

    @property
    def private_key(self) -> str:
        """The App's private key as PEM."""
        return private_key()

    @property
    def violations(self) -> list[str]:
        """Mismatches with GitHub's description."""
        return self.hub.violations

    @property
    def faults(self) -> deque[Fault]:
        """Faults to inject, each once, at the next matching request."""
        return self._api_server.faults

    def watch(self, watcher: Callable[[RecordedRequest], None] | None) -> None:
        """Calls `watcher` for each request after its work and before its response."""
        self._api_server.watcher = watcher

    @property
    def seen(self) -> list[RecordedRequest]:
        """The received requests."""
        return self._api_server.seen

    @property
    def deliveries(self) -> WebhookSender:
        """The deliveries to the App: `pop`, `settle`, `mischief`, `log`."""
        return self.hub.webhook_sender

    @property
    def webhook_url(self) -> str:
        """The URL of the App's webhook."""
        return self.hub.webhook_sender.url

    @webhook_url.setter
    def webhook_url(self, url: str) -> None:
        self.hub.webhook_sender.aim(url)

    def repository(self, name: str, *, installed: bool = True, **fields: Any) -> RepositoryDouble:
        """The repository of this name; created with the App installed by its owner if it is missing.

        properties: private, has_issues, default_branch of a new one
        """
        with self.hub.lock:
            known = self.hub.world.named(name)
            if known is not None:
                return RepositoryDouble(self.hub, known)
            login, _, short = name.partition("/")
            owner = self.hub.world.account(login)
            made = self.hub.create(owner, short, **fields)
            if installed:
                theirs = [one for one in self.hub.world.installations.values() if one.account is owner]
                if theirs and not theirs[0].deleted:
                    app_installations.choose(self.hub, theirs[0], [made], [])
                else:
                    app_installations.install(self.hub, owner, [made])
            return RepositoryDouble(self.hub, made)

    def installation(self, login: str) -> Installation:
        """The App's installation in an account."""
        found = [one for one in self.hub.world.installations.values() if one.account.login == login]
        return found[-1]

    def suspend(self, login: str, suspended: bool = True) -> None:
        """An account suspends the App, or resumes it."""
        with self.hub.lock:
            app_installations.suspend(self.hub, self.installation(login), suspended)

    def uninstall(self, login: str) -> None:
        """An account uninstalls the App."""
        with self.hub.lock:
            app_installations.uninstall(self.hub, self.installation(login))

    def accept(self, login: str, **permissions: str) -> None:
        """An account accepts new permissions of the App, such as issues="write"."""
        with self.hub.lock:
            one = self.installation(login)
            app_installations.accept(self.hub, one, permissions, list(self.hub.events))

    def token(self, login: str) -> str:
        """A new personal token."""
        return self.hub.identity.personal(login)

    def manifest_code(self) -> str:
        """The one-time code after the registration of an App from its manifest."""
        return self.hub.identity.manifest_code()

    def redeliver(self, delivery: Delivery) -> None:
        """Redelivers, as the button in the App's settings does."""
        with self.hub.lock:
            self.hub.webhook_sender.again(delivery, next(self.hub.world.delivery_ids), self.hub.world.clock())

    def mischief(self, **planned: Any) -> None:
        """Sets the faults of later deliveries; see `DeliveryFaults`."""
        self.hub.webhook_sender.mischief(DeliveryFaults(**planned))

    def settle(self) -> None:
        """Waits until all deliveries have a response."""
        self.hub.webhook_sender.settle()

    def posts(self, ending: str) -> list[RecordedRequest]:
        """The POSTs received on paths with this ending."""
        return [seen for seen in self.seen if seen.method == "POST" and seen.path.endswith(ending)]
