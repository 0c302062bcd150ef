"""Comments on issues and pull requests: those said once, and the one that is kept up to date."""

from __future__ import annotations

from bot.github.client import Client
from bot.github.effects.kind import EffectKind, find_own, kind, require_parent_sent, since, thread_path
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect


@kind
class Comment(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/{number}/comments`."""

    name = "comment"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """The comment as it is posted."""
        return Request("POST", f"{thread_path(effect)}/comments", {"body": effect.payload["body"]})

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Says it, where there is an issue to say it on."""
        require_parent_sent(effect)
        return super().send(client, effect)

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our own comment that carries the marker."""
        there = find_own(client.pages(f"{thread_path(effect)}/comments", since=since(effect)), effect, login)
        return self.sent(there) if there is not None else None


@kind
class Sticky(Comment):
    """The one comment of a pull request, edited in place.

    It is looked up whenever the outbox has no id for it, even after its table was lost: a pull
    request has one comment of ours, however old.
    """

    name = "sticky"
    permission = "pull_requests=write"
    editable = True
    always_search = True

    def change(self, effect: ClaimedEffect) -> Request:
        """`PATCH /repos/{owner}/{repo}/issues/comments/{id}`."""
        path = f"/repos/{checked_target(effect.target)}/issues/comments/{effect.remote_id}"
        return Request("PATCH", path, {"body": effect.payload["body"]})

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our own comment that carries the marker, of whatever age."""
        there = find_own(client.pages(f"{thread_path(effect)}/comments"), effect, login)
        return self.sent(there) if there is not None else None
