"""Comments on issues and pull requests: those said once, and the one that is kept up to date."""

from __future__ import annotations

from bot.github.client import Client
from bot.github.effects.kind import Kind, in_public, kind, ours, since, thread
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import Claimed


@kind
class Comment(Kind):
    """`POST /repos/{owner}/{repo}/issues/{number}/comments`."""

    name = "comment"
    need = "issues=write"

    def create(self, effect: Claimed) -> Request:
        """The comment as it is posted."""
        return Request("POST", f"{thread(effect)}/comments", {"body": effect.payload["body"]})

    def send(self, client: Client, effect: Claimed) -> Sent:
        """Says it, where there is an issue to say it on."""
        in_public(effect)
        return super().send(client, effect)

    def find(self, client: Client, effect: Claimed, me: str) -> Sent | None:
        """Our own comment that carries the marker."""
        there = ours(client.pages(f"{thread(effect)}/comments", since=since(effect)), effect, me)
        return self.sent(there) if there is not None else None


@kind
class Sticky(Comment):
    """The one comment of a pull request, edited in place.

    It is looked for whenever the outbox does not know its id, be it because its table was lost: a pull
    request has one comment of ours, however old.
    """

    name = "sticky"
    need = "pull_requests=write"
    living = True
    seeks = True

    def change(self, effect: Claimed) -> Request:
        """`PATCH /repos/{owner}/{repo}/issues/comments/{id}`."""
        path = f"/repos/{checked_target(effect.target)}/issues/comments/{effect.remote}"
        return Request("PATCH", path, {"body": effect.payload["body"]})

    def find(self, client: Client, effect: Claimed, me: str) -> Sent | None:
        """Our own comment that carries the marker, of whatever age."""
        there = ours(client.pages(f"{thread(effect)}/comments"), effect, me)
        return self.sent(there) if there is not None else None
