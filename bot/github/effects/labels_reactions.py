"""Idempotent effects: reactions, labels, and the state of issues."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bot.errors import RefusalError
from bot.github.client import Client
from bot.github.effects.kind import EffectKind, kind, require_parent_sent, thread_path
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect

#: Color of our labels: GitHub's pale violet, which no default label has.
COLOR = "d4c5f9"
DESCRIPTION = "Found by Assay"


@kind
class Reaction(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/comments/{id}/reactions`; 201 the first time, then 200."""

    name = "reaction"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """The reaction to `payload.comment`."""
        target, comment = checked_target(effect.target), int(effect.payload["comment"])
        path = f"/repos/{target}/issues/comments/{comment}/reactions"
        return Request("POST", path, {"content": effect.payload["content"]})

    def sent(self, answer: Any) -> Sent:
        """A reaction has no URL."""
        return Sent("", remote_id=str(answer["id"]))


@kind
class IssueState(EffectKind):
    """`PATCH /repos/{owner}/{repo}/issues/{number}`: open or closed, with the reason."""

    name = "issue_state"
    permission = "issues=write"
    editable = True

    def create(self, effect: ClaimedEffect) -> Request:
        """Sets the state."""
        return Request("PATCH", thread_path(effect), effect.payload)

    def change(self, effect: ClaimedEffect) -> Request:
        """Sets the state: an issue has one."""
        return self.create(effect)

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Sets the state if the issue was published."""
        require_parent_sent(effect)
        return super().send(client, effect)

    def sent(self, answer: Any) -> Sent:
        """The issue's URL."""
        return Sent(answer["html_url"], remote_id=str(answer["number"]))


@kind
class Labels(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/{number}/labels`; missing labels are created first."""

    name = "labels"
    permission = "issues=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """Adds the labels to the existing ones."""
        return Request("POST", f"{thread_path(effect)}/labels", {"labels": effect.payload["labels"]})

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Creates missing labels, then adds all."""
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
