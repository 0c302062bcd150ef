"""Comments on issues and pull requests: single ones and the sticky one."""

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
        """Creates the comment."""
        return Request("POST", f"{thread_path(effect)}/comments", {"body": effect.payload["body"]})

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Creates the comment if its issue or pull request was published."""
        require_parent_sent(effect)
        return super().send(client, effect)

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our comment with the marker."""
        there = find_own(client.pages(f"{thread_path(effect)}/comments", since=since(effect)), effect, login)
        return self.sent(there) if there is not None else None


@kind
class Sticky(Comment):
    """The sticky comment of a pull request, edited in place.

    It is searched for whenever the outbox has no id for it, even after a loss of the table: a pull request
    has at most one sticky comment of ours.
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
        """Our comment with the marker, of any age."""
        there = find_own(client.pages(f"{thread_path(effect)}/comments"), effect, login)
        return self.sent(there) if there is not None else None
