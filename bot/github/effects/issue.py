"""Issues about bugs: created once; later only their state and labels change."""

from __future__ import annotations

from typing import Any

from bot.github.effects.kind import EffectKind, find_own, kind, since
from bot.github.requester import ApiRequester
from bot.github.requests import Sent
from bot.store.outbox import ClaimedEffect


@kind
class Issue(EffectKind):
    """`POST /repos/{owner}/{repo}/issues`; GitHub creates missing labels."""

    name = "issue"
    permission = "issues=write"

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates the issue."""
        api.repository(effect.target).create_issue(**effect.payload)

    def sent(self, answer: Any) -> Sent:
        """Its URL and number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our issue with the marker, open or closed."""
        repository = api.repository(effect.target)
        found = repository.get_issues(state="all", since=since(effect), sort="created", direction="asc")
        there = find_own(found, effect, login)
        return self.sent(there) if there is not None else None
