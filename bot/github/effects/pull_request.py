"""Pull requests of proposed tests: a branch with one commit, made through the Git Data API.

The branch is made once and never moved: commits that people add to it stay. An interrupted effect goes on
where it stopped, because a branch or pull request that exists is found by the branch's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from github import InputGitAuthor, InputGitTreeElement
from github.GitCommit import GitCommit
from github.GithubObject import NotSet
from github.GitTree import GitTree

from bot.github.effects.kind import EffectKind, kind
from bot.github.identity import PROPOSER
from bot.github.requester import ApiRequester, exists, raw
from bot.github.requests import Sent
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect
from bot.store.proposals import PULL_REQUEST

_CONTENTS, _PULLS = "contents=write", "pull_requests=write"
_FILE_MODE = "100644"  # a regular file (GitHub, "Create a tree")
#: Parts of the payload that are no fields of a pull request.
_COMMIT = "commit"


@kind
class PullRequest(EffectKind):
    """`POST …/git/trees`, `…/git/commits`, `…/git/refs`, then `POST /repos/{owner}/{repo}/pulls`.

    The payload is the body of the last request, and `commit`: {"parent", "path", "content", "message"}, and
    `author`: {"name", "email"} unless the App is it.
    """

    name = PULL_REQUEST
    permission = _PULLS
    scope = PROPOSER
    shown = -1

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Makes the branch unless it exists, and opens the pull request."""
        contents = api.needing(_CONTENTS)
        branch = effect.payload["head"]
        if not exists(contents.repository(effect.target).get_git_ref(f"heads/{branch}")):
            _create_branch(contents, effect.target, branch, effect.payload[_COMMIT])
        fields = {name: value for name, value in effect.payload.items() if name != _COMMIT}
        api.repository(effect.target).create_pull(**fields)

    def sent(self, answer: Any) -> Sent:
        """Its URL and number."""
        return Sent(answer["html_url"], answer["number"], str(answer["number"]))

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """The pull request from our branch, open or not."""
        head = f"{effect.target.partition('/')[0]}:{effect.payload['head']}"
        for one in map(raw, api.repository(effect.target).get_pulls(state="all", head=head)):
            if (one.get("user") or {}).get("login") == login:
                return self.sent(one)
        return None


def _create_branch(api: ApiRequester, target: str, branch: str, commit: Mapping[str, Any]) -> None:
    api.repository(target).create_git_ref(f"refs/heads/{branch}", create_commit(api, target, commit))


def create_commit(api: ApiRequester, target: str, commit: Mapping[str, Any]) -> str:
    """The id of a new commit on `commit.parent` that writes one file."""
    parent = GitCommit(api, attributes={"sha": commit["parent"]}, completed=True)
    author = InputGitAuthor(**commit["author"]) if commit.get("author") else NotSet
    tree = _tree(api, create_tree(api, target, commit))
    made = api.repository(target).create_git_commit(commit["message"], tree, [parent], author)
    return _sha(raw(made))


def create_tree(api: ApiRequester, target: str, commit: Mapping[str, Any]) -> str:
    """The id of the tree of such a commit; the same files give the same id."""
    repository = api.repository(target)
    base = _sha(raw(repository.get_git_commit(commit["parent"])), "tree")
    file = InputGitTreeElement(commit["path"], _FILE_MODE, "blob", commit["content"])
    return _sha(raw(repository.create_git_tree([file], _tree(api, base))))


def _tree(api: ApiRequester, sha: str) -> GitTree:
    return GitTree(api, attributes={"sha": sha}, completed=True)


def _sha(answer: Any, part: str = "") -> str:
    with expected_shape("the commit of a proposed test"):
        return str((answer[part] if part else answer)["sha"])
