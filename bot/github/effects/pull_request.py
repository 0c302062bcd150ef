"""Pull requests of proposed tests: a branch with one commit, made through the Git Data API.

The branch is made once and never moved: commits that people add to it stay. An interrupted effect goes on
where it stopped, because a branch or pull request that exists is found by the branch's name.
"""

from __future__ import annotations

from typing import Any

from bot.github.client import Client
from bot.github.effects.kind import EffectKind, kind
from bot.github.identity import PROPOSER
from bot.github.requests import Request, Sent, checked_target
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect
from bot.store.proposals import PULL_REQUEST

_CONTENTS, _PULLS = "contents=write", "pull_requests=write"
_FILE_MODE = "100644"  # a regular file (GitHub, "Create a tree")
#: Parts of the payload that are no fields of a pull request.
_COMMIT = "commit"
_UNKNOWN = "{sha}"  # an id that a dry run cannot know


@kind
class PullRequest(EffectKind):
    """`POST …/git/trees`, `…/git/commits`, `…/git/refs`, then `POST /repos/{owner}/{repo}/pulls`.

    The payload is the body of the last request, and `commit`: {"parent", "path", "content", "message"}.
    """

    name = PULL_REQUEST
    permission = _PULLS
    scope = PROPOSER

    def create(self, effect: ClaimedEffect) -> Request:
        """Opens the pull request from the branch."""
        body = {name: value for name, value in effect.payload.items() if name != _COMMIT}
        return Request("POST", f"/repos/{checked_target(effect.target)}/pulls", body)

    def requests(self, effect: ClaimedEffect) -> list[Request]:
        """The pull request, then what is made before it."""
        return [
            self.create(effect),
            self._tree(effect, _UNKNOWN),
            self._commit(effect, _UNKNOWN),
            self._branch(effect, _UNKNOWN),
        ]

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Makes the branch unless it exists, and opens the pull request."""
        target = checked_target(effect.target)
        if client.get_or_none(f"/repos/{target}/git/ref/heads/{effect.payload['head']}") is None:
            parent = effect.payload[_COMMIT]["parent"]
            base = _sha(client.get(f"/repos/{target}/git/commits/{parent}"), "tree")
            tree = _sha(client.send(self._tree(effect, base), _CONTENTS).data)
            commit = _sha(client.send(self._commit(effect, tree), _CONTENTS).data)
            client.send(self._branch(effect, commit), _CONTENTS)
        return self.read_sent(client.send(self.create(effect), self.permission).data)

    def sent(self, answer: Any) -> Sent:
        """Its URL and number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """The pull request from our branch, open or not."""
        target = checked_target(effect.target)
        head = f"{target.partition('/')[0]}:{effect.payload['head']}"
        for one in client.pages(f"/repos/{target}/pulls", state="all", head=head):
            if (one.get("user") or {}).get("login") == login:
                return self.sent(one)
        return None

    def _tree(self, effect: ClaimedEffect, base: str) -> Request:
        commit = effect.payload[_COMMIT]
        file = {"path": commit["path"], "mode": _FILE_MODE, "type": "blob", "content": commit["content"]}
        target = checked_target(effect.target)
        return Request("POST", f"/repos/{target}/git/trees", {"base_tree": base, "tree": [file]})

    def _commit(self, effect: ClaimedEffect, tree: str) -> Request:
        commit = effect.payload[_COMMIT]
        body = {"message": commit["message"], "tree": tree, "parents": [commit["parent"]]}
        return Request("POST", f"/repos/{checked_target(effect.target)}/git/commits", body)

    def _branch(self, effect: ClaimedEffect, commit: str) -> Request:
        body = {"ref": f"refs/heads/{effect.payload['head']}", "sha": commit}
        return Request("POST", f"/repos/{checked_target(effect.target)}/git/refs", body)


def _sha(answer: Any, part: str = "") -> str:
    with expected_shape("the commit of a proposed test"):
        return str((answer[part] if part else answer)["sha"])
