"""Issues about bugs: created once; later only their state and labels change."""

from __future__ import annotations

from typing import Any

from bot.github.client import Client
from bot.github.effects.kind import EffectKind, find_own, kind, since
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect


@kind
class Issue(EffectKind):
    """`POST /repos/{owner}/{repo}/issues`; GitHub creates missing labels."""

    name = "issue"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """Creates the issue."""
        return Request("POST", f"/repos/{checked_target(effect.target)}/issues", effect.payload)

    def sent(self, answer: Any) -> Sent:
        """Its URL and number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our issue with the marker, open or closed."""
        path = f"/repos/{checked_target(effect.target)}/issues"
        found = client.pages(path, state="all", since=since(effect), sort="created", direction="asc")
        there = find_own(found, effect, login)
        return self.sent(there) if there is not None else None
