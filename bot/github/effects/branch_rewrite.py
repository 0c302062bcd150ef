"""The branch of a proposed test, written anew on a newer commit.

GitHub's references have no compare-and-swap: a commit that somebody pushes between the check and the move of
the branch, which are two requests in a row, stays only in GitHub's reflog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.errors import RefusalError
from bot.github.effects.kind import EffectKind, kind
from bot.github.effects.pull_request import create_commit, create_tree
from bot.github.identity import PROPOSER
from bot.github.requester import ApiRequester, exists, raw
from bot.github.requests import Sent
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect
from bot.store.proposals import BRANCH_REWRITE


@kind
class BranchRewrite(EffectKind):
    """`PATCH /repos/{owner}/{repo}/git/refs/heads/{branch}` with force, after the commit was made.

    The payload is {"head", "commit", "replaces"}: the branch, and the commits as in a pull request's effect.
    """

    name = BRANCH_REWRITE
    permission = "contents=write"
    scope = PROPOSER
    shown = -1

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Moves the branch. Raises RefusalError if it holds anything but the commit to replace."""
        branch, repository = effect.payload["head"], api.repository(effect.target)
        reference = repository.get_git_ref(f"heads/{branch}")
        if not exists(reference):
            raise RefusalError(f"the branch {branch} is gone")
        head = reference.object.sha
        if not _is_at(api, effect.target, head, effect.payload["commit"]):
            if not _is_at(api, effect.target, head, effect.payload["replaces"]):
                raise RefusalError(
                    f"{branch} has commits that Assay did not make, which stay: rebase it by hand"
                )
            reference.edit(create_commit(api, effect.target, effect.payload["commit"]), force=True)

    def sent(self, answer: Any) -> Sent:
        """The reference."""
        return Sent(answer["url"])


def _is_at(api: ApiRequester, target: str, head: str, commit: Mapping[str, Any]) -> bool:
    """Whether the head is this commit: its parent, its message, and all its files."""
    with expected_shape("the commit of a branch"):
        there = raw(api.repository(target).get_git_commit(head))
        same = [one["sha"] for one in there["parents"]] == [commit["parent"]]
        if not same or there["message"].strip() != commit["message"].strip():
            return False
        return bool(there["tree"]["sha"] == create_tree(api, target, commit))
