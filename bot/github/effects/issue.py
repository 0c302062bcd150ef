"""An issue about a bug: filed once, never changed by us except for its state and labels."""

from __future__ import annotations

from typing import Any

from bot.github.client import Client
from bot.github.effects.kind import EffectKind, find_own, kind, since
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect


@kind
class Issue(EffectKind):
    """`POST /repos/{owner}/{repo}/issues`; GitHub makes the labels that are missing."""

    name = "issue"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """The issue as it is posted."""
        return Request("POST", f"/repos/{checked_target(effect.target)}/issues", effect.payload)

    def sent(self, answer: Any) -> Sent:
        """Its page and its number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our own issue that carries the marker, open or closed."""
        path = f"/repos/{checked_target(effect.target)}/issues"
        found = client.pages(path, state="all", since=since(effect), sort="created", direction="asc")
        there = find_own(found, effect, login)
        return self.sent(there) if there is not None else None
