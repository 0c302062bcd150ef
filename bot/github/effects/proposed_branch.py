"""The branch of a proposed test, made through the Git Data API, in the target or in a fork of it.

A payload names the fork, `owner/name`, as `fork`; without one the branch is in the target. A commit is
{"parent", "files", "message"}, and `author`: {"name", "email"} unless the App is it; `files` are the new
contents by path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from github import InputGitAuthor, InputGitTreeElement
from github.GitCommit import GitCommit
from github.GithubObject import NotSet
from github.GitTree import GitTree

from bot.errors import RefusalError
from bot.github.effects.kind import EffectKind
from bot.github.identity import PROPOSER, PUSHER, REPORTER, TokenScope
from bot.github.requester import ApiRequester, exists, raw
from bot.github.responses import NotFoundError, expected_shape
from bot.store.outbox import ClaimedEffect

_FILE_MODE = "100644"  # a regular file (GitHub, "Create a tree")


class ProposedBranch(EffectKind):
    """A branch of ours, which `prepare` makes or moves, and its pull request, which `publish` writes."""

    permission = "pull_requests=write"
    branch_permission: ClassVar[str] = "contents=write"
    branch_scope: ClassVar[TokenScope | None] = PUSHER
    shown = -1

    def branch_repository(self, effect: ClaimedEffect) -> str:
        """The fork, else the target."""
        return str(effect.payload.get("fork") or effect.target)

    def scope_for(self, effect: ClaimedEffect) -> TokenScope:
        """Through a fork, none that may write contents of the target."""
        return REPORTER if self.branch_repository(effect) != effect.target else PROPOSER


def require_commit(api: ApiRequester, effect: ClaimedEffect, fork: str, base: str, commit: str) -> None:
    """Brings a branch of the fork up to the target's if the fork lacks a commit.

    Raises RefusalError if the repository is no fork of the target, or lacks the commit then, too.
    """
    repository = api.repository(fork)
    with expected_shape(fork):
        known = repository.complete().raw_data
        source = str((known.get("source") or {}).get("full_name", effect.target))
        is_fork = known.get("fork", True) and source.lower() == effect.target.lower()
    if not is_fork:
        raise RefusalError(
            f"{fork} is no fork of {effect.target}; name one in ASSAY_PROPOSAL_FORKS, or none if the App may "
            f"write contents of {effect.target}"
        )
    if _has(api, fork, commit):
        return
    repository.merge_upstream(base)
    if not _has(api, fork, commit):
        raise RefusalError(
            f"{fork} lacks {commit[:12]} of {effect.target} although its branch {base} was synchronized; "
            "push the commit there, then approve the effect"
        )


def _has(api: ApiRequester, repository: str, commit: str) -> bool:
    try:
        api.repository(repository).get_git_commit(commit)
    except NotFoundError:
        return False
    return True


def create_branch(api: ApiRequester, repository: str, branch: str, commit: Mapping[str, Any]) -> None:
    """A branch with one commit, unless it exists."""
    if not exists(api.repository(repository).get_git_ref(f"heads/{branch}")):
        made = create_commit(api, repository, commit)
        api.repository(repository).create_git_ref(f"refs/heads/{branch}", made)


def create_commit(api: ApiRequester, repository: str, commit: Mapping[str, Any]) -> str:
    """The id of a new commit on `commit.parent` that writes its files."""
    parent = GitCommit(api, attributes={"sha": commit["parent"]}, completed=True)
    author = InputGitAuthor(**commit["author"]) if commit.get("author") else NotSet
    tree = _tree(api, _create_tree(api, repository, commit))
    made = api.repository(repository).create_git_commit(commit["message"], tree, [parent], author)
    return _sha(raw(made))


def is_at(api: ApiRequester, repository: str, head: str, commit: Mapping[str, Any]) -> bool:
    """Whether the head is this commit: its parent, its message, and all its files."""
    with expected_shape("the commit of a branch"):
        there = raw(api.repository(repository).get_git_commit(head))
        same = [one["sha"] for one in there["parents"]] == [commit["parent"]]
        if not same or there["message"].strip() != commit["message"].strip():
            return False
        return bool(there["tree"]["sha"] == _create_tree(api, repository, commit))


def _create_tree(api: ApiRequester, repository: str, commit: Mapping[str, Any]) -> str:
    """The id of the tree of such a commit; the same files give the same id."""
    made = api.repository(repository)
    base = _sha(raw(made.get_git_commit(commit["parent"])), "tree")
    files = [InputGitTreeElement(path, _FILE_MODE, "blob", text) for path, text in _files(commit).items()]
    return _sha(raw(made.create_git_tree(files, _tree(api, base))))


def _files(commit: Mapping[str, Any]) -> dict[str, str]:
    """The files of a commit. Effects that were stored before a commit could have several name one."""
    return dict(commit["files"]) if "files" in commit else {commit["path"]: commit["content"]}


def _tree(api: ApiRequester, sha: str) -> GitTree:
    return GitTree(api, attributes={"sha": sha}, completed=True)


def _sha(answer: Any, part: str = "") -> str:
    with expected_shape("the commit of a proposed test"):
        return str((answer[part] if part else answer)["sha"])
