"""Comments on issues and pull requests: single ones and the sticky one."""

from __future__ import annotations

from github.IssueComment import IssueComment

from bot.github.effects.kind import EffectKind, find_own, kind, since, thread_of
from bot.github.requester import ApiRequester
from bot.github.requests import Sent
from bot.store.outbox import ClaimedEffect


@kind
class Comment(EffectKind):
    """`POST /repos/{owner}/{repo}/issues/{number}/comments`."""

    name = "comment"
    permission = "issues=write"
    needs_parent = True

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates the comment."""
        thread_of(api, effect).create_comment(effect.payload["body"])

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our comment with the marker."""
        there = find_own(thread_of(api, effect).get_comments(since=since(effect)), effect, login)
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

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates the comment, or `PATCH /repos/{owner}/{repo}/issues/comments/{id}`."""
        if effect.remote_id:
            comment_of(api, effect.target, effect.remote_id).edit(effect.payload["body"])
        else:
            super().publish(api, effect)

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our comment with the marker, of any age."""
        there = find_own(thread_of(api, effect).get_comments(), effect, login)
        return self.sent(there) if there is not None else None


def comment_of(api: ApiRequester, target: str, remote_id: str) -> IssueComment:
    """A comment, not read yet; PyGithub has it below its issue only, whose number is not needed."""
    return IssueComment(api, url=f"{api.repository(target).url}/issues/comments/{remote_id}")
