"""An issue about a bug: filed once, never changed by us except for its state and labels."""

from __future__ import annotations

from typing import Any

from bot.github.client import Client
from bot.github.effects.kind import Kind, kind, ours, since
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import Claimed


@kind
class Issue(Kind):
    """`POST /repos/{owner}/{repo}/issues`; GitHub makes the labels that are missing."""

    name = "issue"
    need = "issues=write"

    def create(self, effect: Claimed) -> Request:
        """The issue as it is posted."""
        return Request("POST", f"/repos/{checked_target(effect.target)}/issues", effect.payload)

    def sent(self, answer: Any) -> Sent:
        """Its page and its number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, client: Client, effect: Claimed, me: str) -> Sent | None:
        """Our own issue that carries the marker, open or closed."""
        path = f"/repos/{checked_target(effect.target)}/issues"
        found = client.pages(path, state="all", since=since(effect), sort="created", direction="asc")
        there = ours(found, effect, me)
        return self.sent(there) if there is not None else None
