"""The double without HTTP: its records, authentication, limits and events."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from tests.github import views
from tests.github.git import Git
from tests.github.identity import Identity
from tests.github.limits import Limits
from tests.github.schema_completion import complete
from tests.github.state import Account, Clock, GitHubState, Installation, Repository
from tests.github.webhook_sender import Delivery, WebhookSender, new_guid
from tests.github_api.api_schema import payload_faults

#: The permissions and events that the App requests.
PERMISSIONS = {
    "metadata": "read",
    "contents": "read",
    "pull_requests": "write",
    "issues": "write",
    "checks": "write",
}
EVENTS = (
    "push",
    "pull_request",
    "issues",
    "issue_comment",
    "check_run",
    "check_suite",
    "merge_group",
    "repository",
)
#: Sent to every App ("Webhook events and payloads").
_ALWAYS = {"installation", "installation_repositories", "ping"}


class GitHubCore:
    """The state and operations of the double. Writers hold `lock`."""

    def __init__(self, folder: Path, clock: Clock, secret: str) -> None:
        self.folder = folder
        self.url = ""
        self.lock = threading.RLock()
        self.world = GitHubState(clock)
        self.identity = Identity(self.world)
        self.artifact_store = ""  # where artifacts are downloaded from: another server
        self.limits = Limits()
        self.webhook_sender = WebhookSender(secret)
        self.permissions, self.events = dict(PERMISSIONS), EVENTS
        self.violations: list[str] = []

    @property
    def git_url(self) -> str:
        """Base URL for clones."""
        return self.folder.resolve().as_uri()

    def create(self, owner: Account, name: str, of: Repository | None = None, **fields: Any) -> Repository:
        """A new repository, empty or a fork."""
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name), f"GitHub takes no repository called {name!r}"
        number = next(self.world.ids)
        git = Git.create(self.folder / owner.login / f"{name}.git", of.git if of else None)
        made = Repository(number, owner, name, git, self.world.clock(), fork_of=of, **fields)
        self.world.repositories[number] = made
        self.world.names[made.full_name.lower()] = number
        return made

    def emit(
        self,
        event: str,
        payload: dict[str, Any],
        repository: Repository | None,
        sender: Account,
        installation: Installation | None = None,
    ) -> None:
        """Sends an event to the App if it is installed there, subscribed and has the permission."""
        if repository is not None:
            installation = self.world.installation_of(repository)
        if installation is None or not self._wants(installation, event):
            return
        whole = payload | {"sender": views.user(self, sender)}
        if repository is not None:
            whole["repository"] = views.repository(self, repository)
        if "installation" not in whole:
            whole["installation"] = {"id": installation.id, "node_id": views.node("IN", installation.id)}
        action = payload.get("action")
        name = "-".join(filter(None, (event, action))).replace("_", "-")
        whole = complete(f"#/webhooks/{name}", whole)
        self.violations += payload_faults(event, whole)
        number = next(self.world.delivery_ids)
        place = repository.id if repository else None
        self.webhook_sender.post(
            Delivery(number, new_guid(number), event, whole, self.world.clock(), installation.id, place)
        )

    def _wants(self, installation: Installation, event: str) -> bool:
        if event in _ALWAYS:
            return True
        return event in installation.events and installation.suspended_at is None
