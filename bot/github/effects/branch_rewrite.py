"""The branch of a proposed test, written anew on a newer commit, and the new proof in its pull request.

GitHub's references have no compare-and-swap: a commit that somebody pushes between the check and the move of
the branch, which are two requests in a row, stays only in GitHub's reflog.
"""

from __future__ import annotations

from typing import Any

from bot.errors import RefusalError
from bot.github.effects.kind import kind
from bot.github.effects.proposed_branch import ProposedBranch, create_commit, is_at, require_commit
from bot.github.requester import ApiRequester, exists
from bot.github.requests import Sent
from bot.store.outbox import ClaimedEffect
from bot.store.proposals import BRANCH_REWRITE


@kind
class BranchRewrite(ProposedBranch):
    """`PATCH /repos/{owner}/{repo}/git/refs/heads/{branch}` with force, after the commit was made.

    Then `PATCH /repos/{owner}/{repo}/pulls/{number}`. The payload is {"head", "base", "fork", "number",
    "commit", "body", "replaces": {"commit", "body"}}, as in the effect of a pull request.
    """

    name = BRANCH_REWRITE

    def prepare(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Moves the branch. Raises RefusalError if it holds anything but the commit to replace."""
        payload, place = effect.payload, self.branch_repository(effect)
        branch, commit = payload["head"], payload["commit"]
        reference = api.repository(place).get_git_ref(f"heads/{branch}")
        if not exists(reference):
            raise RefusalError(f"the branch {branch} is gone")
        if place != effect.target:
            require_commit(api, effect, place, payload["base"], commit["parent"])
        head = reference.object.sha
        if is_at(api, place, head, commit):
            return
        if not is_at(api, place, head, payload["replaces"]["commit"]):
            raise RefusalError(f"{branch} has commits that Assay did not make, which stay: rebase it by hand")
        reference.edit(create_commit(api, place, commit), force=True)

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Puts the new text in place of the old one; what people wrote around it stays."""
        pull = api.repository(effect.target).get_pull(effect.payload["number"]).complete()
        there = (pull.body or "").replace("\r\n", "\n")
        before, after = effect.payload["replaces"]["body"].strip(), effect.payload["body"].strip()
        pull.edit(body=there.replace(before, after))

    def sent(self, answer: Any) -> Sent:
        """The pull request."""
        return Sent(answer["html_url"], answer["number"])
