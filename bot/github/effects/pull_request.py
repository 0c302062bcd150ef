"""Pull requests of proposed tests.

The branch is made once and never moved: commits that people add to it stay. An interrupted effect goes on
where it stopped, because a branch or pull request that exists is found by the branch's name.
"""

from __future__ import annotations

from typing import Any

from bot.github.effects.kind import kind
from bot.github.effects.proposed_branch import ProposedBranch, create_branch, require_commit
from bot.github.requester import ApiRequester, raw
from bot.github.requests import Sent
from bot.store.outbox import ClaimedEffect
from bot.store.proposals import PULL_REQUEST

#: Parts of the payload that are no fields of a pull request.
_OURS = frozenset({"commit", "fork"})


@kind
class PullRequest(ProposedBranch):
    """`POST …/git/trees`, `…/git/commits`, `…/git/refs`, then `POST /repos/{owner}/{repo}/pulls`.

    The payload is the body of the last request, `commit` and `fork` (`proposed_branch`).
    """

    name = PULL_REQUEST

    def prepare(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Makes the branch unless it exists, and in a fork first synchronizes the base if it is behind."""
        repository, commit = self.branch_repository(effect), effect.payload["commit"]
        if repository != effect.target:
            require_commit(api, effect, repository, effect.payload["base"], commit["parent"])
        create_branch(api, repository, effect.payload["head"], commit)

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Opens the pull request."""
        fields = {name: value for name, value in effect.payload.items() if name not in _OURS}
        repository = self.branch_repository(effect)
        if repository != effect.target:
            fields["head"] = self._label(effect)
            fields["head_repo"] = repository.partition("/")[2]
            # GitHub lets only a fork's owner grant this (its error "fork_collab").
            fields["maintainer_can_modify"] = False
        api.repository(effect.target).create_pull(**fields)

    def sent(self, answer: Any) -> Sent:
        """Its URL and number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """The pull request from our branch, open or not."""
        for one in map(raw, api.repository(effect.target).get_pulls(state="all", head=self._label(effect))):
            if (one.get("user") or {}).get("login") == login:
                return self.sent(one)
        return None

    def _label(self, effect: ClaimedEffect) -> str:
        return f"{self.branch_repository(effect).partition('/')[0]}:{effect.payload['head']}"
