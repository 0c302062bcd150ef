"""Idempotent effects: reactions, labels, and the state of issues."""

from __future__ import annotations

from typing import Any

from bot.errors import RefusalError
from bot.github.effects.comment import comment_of
from bot.github.effects.kind import EffectKind, kind, thread_of
from bot.github.requester import ApiRequester, exists
from bot.github.requests import Request, Sent
from bot.store.outbox import ClaimedEffect

#: Color of our labels: GitHub's pale violet, which no default label has.
COLOR = "d4c5f9"
DESCRIPTION = "Found by Assay"


@kind
class Reaction(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/comments/{id}/reactions`; 201 the first time, then 200."""

    name = "reaction"
    permission = "issues=write"

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Reacts to `payload.comment`."""
        comment = comment_of(api, effect.target, str(int(effect.payload["comment"])))
        comment.create_reaction(effect.payload["content"])

    def sent(self, answer: Any) -> Sent:
        """A reaction has no URL."""
        return Sent("", remote_id=str(answer["id"]))


@kind
class IssueState(EffectKind):
    """`PATCH /repos/{owner}/{repo}/issues/{number}`: open or closed, with the reason."""

    name = "issue_state"
    permission = "issues=write"
    editable = True
    needs_parent = True

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Sets the state: an issue has one, so creating and updating are the same."""
        thread_of(api, effect).edit(**effect.payload)

    def sent(self, answer: Any) -> Sent:
        """The issue's URL."""
        return Sent(answer["html_url"], remote_id=str(answer["number"]))


@kind
class Labels(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/{number}/labels`; missing labels are created first."""

    name = "labels"
    permission = "issues=write"
    needs_parent = True

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates missing labels, then adds all to the existing ones."""
        for name in effect.payload["labels"]:
            _ensure(api, effect.target, name)
        path = f"{thread_of(api, effect).url}/labels"
        api.send(Request("POST", path, {"labels": effect.payload["labels"]}))

    def sent(self, answer: Any) -> Sent:
        """Labels have no id of their own."""
        del answer
        return Sent("")


def _ensure(api: ApiRequester, target: str, name: str) -> None:
    repository = api.repository(target)
    if exists(repository.get_label(name)):
        return
    try:
        repository.create_label(name, COLOR, DESCRIPTION)
    except RefusalError:
        if not exists(repository.get_label(name)):  # else another process was first
            raise
