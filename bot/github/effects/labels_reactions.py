"""Small signs: reactions, labels, and whether an issue is open. Doing them twice is doing them once."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bot.errors import RefusalError
from bot.github.client import Client
from bot.github.effects.kind import EffectKind, kind, require_parent_sent, thread_path
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect

#: Of labels that we make: GitHub's own pale violet, which none of its default labels has.
COLOR = "d4c5f9"
DESCRIPTION = "Found by Assay"


@kind
class Reaction(EffectKind):
    """A receipt: `POST /repos/{owner}/{repo}/issues/comments/{id}/reactions`, 201 at first, then 200."""

    name = "reaction"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """The reaction to `payload.comment`."""
        target, comment = checked_target(effect.target), int(effect.payload["comment"])
        path = f"/repos/{target}/issues/comments/{comment}/reactions"
        return Request("POST", path, {"content": effect.payload["content"]})

    def sent(self, answer: Any) -> Sent:
        """It has no page of its own."""
        return Sent("", remote_id=str(answer["id"]))


@kind
class IssueState(EffectKind):
    """`PATCH /repos/{owner}/{repo}/issues/{number}`: open or closed, and why."""

    name = "issue_state"
    permission = "issues=write"
    editable = True

    def create(self, effect: ClaimedEffect) -> Request:
        """The state to be."""
        return Request("PATCH", thread_path(effect), effect.payload)

    def change(self, effect: ClaimedEffect) -> Request:
        """The same: an issue has one state."""
        return self.create(effect)

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Sets it, where there is an issue."""
        require_parent_sent(effect)
        return super().send(client, effect)

    def sent(self, answer: Any) -> Sent:
        """The issue's page."""
        return Sent(answer["html_url"], remote_id=str(answer["number"]))


@kind
class Labels(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/{number}/labels`; labels that are missing are made before."""

    name = "labels"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """Adds them to those that are there."""
        return Request("POST", f"{thread_path(effect)}/labels", {"labels": effect.payload["labels"]})

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Makes what is missing, then adds all."""
        require_parent_sent(effect)
        for name in effect.payload["labels"]:
            _ensure(client, effect.target, name)
        client.send(self.create(effect), self.permission)
        return Sent("")


def _ensure(client: Client, target: str, name: str) -> None:
    path = f"/repos/{checked_target(target)}/labels"
    if client.get_or_none(f"{path}/{quote(name, safe='')}") is not None:
        return
    body = {"name": name, "color": COLOR, "description": DESCRIPTION}
    try:
        client.send(Request("POST", path, body), Labels.permission)
    except RefusalError:
        if client.get_or_none(f"{path}/{quote(name, safe='')}") is None:  # else another process was first
            raise
