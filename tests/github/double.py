"""A GitHub of our own: over real HTTP, on real git, held to GitHub's own description of itself.

    with GitHubDouble(tmp_path) as hub:
        repository = hub.repository("octo/compiler")
        repository.commit({"op.cc": "1"})
        number = repository.open_pull({"op.cc": "2"}, author="ada")

`hub.url` is what ASSAY_GITHUB_API_URL takes, `hub.git_url` what ASSAY_GIT_URL takes. Deliveries go to
`hub.webhook_url` once that is set; until then they wait for `hub.deliveries.pop()`. Leaving the block
fails if any request, answer or payload was not one that GitHub describes.
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

SECRET = "It's a Secret to Everybody"  # the one of GitHub's own documentation


class GitHubDouble:
    """GitHub, its App and its people.

    hub      its records, for tests that look deeper
    clock    its time; tokens and limits go by it
    """

    app_id, app_slug, bot = str(APP_ID), SLUG, f"{SLUG}[bot]"

    def __init__(
        self, folder: Path, clock: Clock = wall_clock, secret: str = SECRET, *, below: str = ""
    ) -> None:
        """`below` is the path that the API lies at: "" on github.com, /api/v3 on an enterprise's server."""
        self.hub = GitHubCore(folder / "github", clock, secret)
        self.secret, self._below = secret, below
        self._api_server = server.ApiServer(self.hub, below)

    def __enter__(self) -> GitHubDouble:
        self._api_server.start()
        self.hub.courier.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hub.courier.stop()
        self._api_server.stop()
        if kind is None:
            assert self.violations == [], "\n".join(self.violations[:20])

    @property
    def url(self) -> str:
        """The API's address."""
        return self.hub.url

    @property
    def git_url(self) -> str:
        """The address below which repositories can be cloned."""
        return self.hub.git_url

    @property
    def git_http_url(self) -> str:
        """The same over HTTP, where private repositories want an installation's token."""
        return self.hub.url.removesuffix(self._below) + git_http.PREFIX.rstrip("/")

    @property
    def private_key(self) -> str:
        """The App's private key, PEM."""
        return private_key()

    @property
    def violations(self) -> list[str]:
        """Whatever was not as GitHub describes it."""
        return self.hub.violations

    @property
    def faults(self) -> deque[Fault]:
        """What is to go wrong, each once, at the next request that it fits."""
        return self._api_server.faults

    def watch(self, watcher: Callable[[RecordedRequest], None] | None) -> None:
        """Has each request told to `watcher` when its work is done and before it is answered."""
        self._api_server.watcher = watcher

    @property
    def seen(self) -> list[RecordedRequest]:
        """The requests that came in."""
        return self._api_server.seen

    @property
    def deliveries(self) -> WebhookSender:
        """What the App is told: `pop`, `settle`, `mischief`, `log`."""
        return self.hub.courier

    @property
    def webhook_url(self) -> str:
        """Where deliveries go."""
        return self.hub.courier.url

    @webhook_url.setter
    def webhook_url(self, url: str) -> None:
        self.hub.courier.aim(url)

    def repository(self, name: str, *, installed: bool = True, **fields: Any) -> RepositoryDouble:
        """The repository of this name; made where there is none, with the App installed by its owner.

        fields   private, has_issues, default_branch of a new one
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
        """The App's installation in somebody's account."""
        found = [one for one in self.hub.world.installations.values() if one.account.login == login]
        return found[-1]

    def suspend(self, login: str, suspended: bool = True) -> None:
        """Somebody suspends the App, or lets it go on."""
        with self.hub.lock:
            app_installations.suspend(self.hub, self.installation(login), suspended)

    def uninstall(self, login: str) -> None:
        """Somebody removes the App."""
        with self.hub.lock:
            app_installations.uninstall(self.hub, self.installation(login))

    def accept(self, login: str, **permissions: str) -> None:
        """Somebody accepts other permissions of the App, such as issues="write"."""
        with self.hub.lock:
            one = self.installation(login)
            app_installations.accept(self.hub, one, permissions, list(self.hub.events))

    def token(self, login: str) -> str:
        """A personal token."""
        return self.hub.identity.personal(login)

    def manifest_code(self) -> str:
        """What GitHub hands to somebody who has registered the App from its manifest: a code, good once."""
        return self.hub.identity.manifest_code()

    def redeliver(self, delivery: Delivery) -> None:
        """Somebody presses "Redeliver" in the App's settings."""
        with self.hub.lock:
            self.hub.courier.again(delivery, next(self.hub.world.delivery_ids), self.hub.world.clock())

    def mischief(self, **planned: Any) -> None:
        """How deliveries fare from now on; see `DeliveryFaults`."""
        self.hub.courier.mischief(DeliveryFaults(**planned))

    def settle(self) -> None:
        """Waits until all deliveries are answered."""
        self.hub.courier.settle()

    def posts(self, ending: str) -> list[RecordedRequest]:
        """The POSTs that came in on paths with this ending."""
        return [seen for seen in self.seen if seen.method == "POST" and seen.path.endswith(ending)]
