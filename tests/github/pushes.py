"""Changes of branches, and the pull requests that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.github import pull_views, views
from tests.github.calls import RefusedError, invalid
from tests.github.git import ZERO, Commit
from tests.github.operations import new_issue, tell_pull, touch
from tests.github.state import Account, CheckSuite, Issue, Pull, Repository, stamp

if TYPE_CHECKING:
    from tests.github.core import GitHubCore


def pushed(hub: GitHubCore, repo: Repository, branch: str, before: str, by: Account) -> None:
    """Sends the event of a branch that was at `before` and was moved, created or deleted."""
    after = repo.git.head(branch) or ZERO
    if before == after:
        return
    if after != ZERO:
        _request_suite(hub, repo, branch, after, by)
    hub.emit("push", push(hub, repo, branch, before or ZERO, after, by), repo, by)
    for base in (repo, *_forked_from(repo)):
        for issue in base.issues.values():
            one = issue.pull
            if one and issue.state == "open" and (one.head_repository, one.head_ref) == (repo, branch):
                follow(hub, base, issue, by)


def _forked_from(repo: Repository) -> list[Repository]:
    return [repo.fork_of, *_forked_from(repo.fork_of)] if repo.fork_of else []


def push(
    hub: GitHubCore, repo: Repository, branch: str, before: str, after: str, by: Account
) -> dict[str, Any]:
    """The payload of a push."""
    deleted, created = after == ZERO, before == ZERO
    forced = not deleted and not created and repo.git.base(before, after) != before
    listed = [] if deleted or created else repo.git.between(before, after)
    if created:
        listed = [repo.git.describe(after)]
    person = {"name": by.login, "email": f"{by.login}@example.org"}
    commits = [_pushed_commit(hub, repo, one) for one in listed[-20:]]
    return {
        "ref": f"refs/heads/{branch}",
        "before": before,
        "after": after,
        "base_ref": None,
        "created": created,
        "deleted": deleted,
        "forced": forced,
        "compare": f"{views.WEB}/{repo.full_name}/compare/{before[:12]}...{after[:12]}",
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
        "pusher": person,
    }


def _pushed_commit(hub: GitHubCore, repo: Repository, one: Commit) -> dict[str, Any]:
    seen = views.commit(hub, repo, one)
    person = {"name": one.author, "email": f"{one.author}@example.org", "username": one.author}
    files = repo.git.files(one.parents[0], one.sha) if one.parents else []

    def named(*statuses: str) -> list[str]:
        return [file["filename"] for file in files if file["status"] in statuses]

    return {
        "id": one.sha,
        "tree_id": one.tree,
        "distinct": True,
        "message": one.message,
        "timestamp": seen["commit"]["author"]["date"],
        "url": seen["html_url"],
        "author": person,
        "committer": person,
        "added": named("added", "copied"),
        "removed": named("removed"),
        "modified": named("modified", "renamed", "changed"),
    }


def _request_suite(hub: GitHubCore, repo: Repository, branch: str, sha: str, by: Account) -> None:
    """Creates a check suite of the pushed commit, as GitHub does for Apps with write access to checks."""
    installation = hub.world.installation_of(repo)
    if installation is None or installation.permissions.get("checks") != "write":
        return
    made = suite(hub, repo, sha, branch)
    hub.emit(
        "check_suite",
        {"action": "requested", "check_suite": pull_views.check_suite(hub, repo, made)},
        repo,
        by,
    )


def suite(hub: GitHubCore, repo: Repository, sha: str, branch: str | None = None) -> CheckSuite:
    """Our check suite of a commit, created if it is missing."""
    for one in repo.suites.values():
        if one.head_sha == sha:
            return one
    made = CheckSuite(next(hub.world.ids), sha, branch, hub.world.clock())
    repo.suites[made.id] = made
    return made


def open_pull(
    hub: GitHubCore,
    repo: Repository,
    author: Account,
    head: tuple[Repository, str],
    base: str,
    text: tuple[str, str | None],
    draft: bool = False,
) -> Issue:
    """A new pull request from a branch here or in a fork."""
    source, branch = head
    sha, onto = source.git.head(branch), repo.git.head(base)
    if not sha or not onto:
        raise invalid("PullRequest", "head" if onto else "base", code="invalid")
    for other in repo.issues.values():
        one = other.pull
        if (
            one
            and other.state == "open"
            and (one.head_repository, one.head_ref, one.base_ref) == (*head, base)
        ):
            raise RefusedError(422, "A pull request already exists for this head.")
    issue = new_issue(hub, repo, author, *text)
    repo.git.fetch(source.git, sha, f"refs/pull/{issue.number}/head")
    if repo.git.base(onto, sha) == sha:
        del repo.issues[issue.number]
        raise RefusedError(422, f"No commits between {base} and {branch}")
    issue.pull = Pull(source, branch, base, sha, onto, draft)
    tell_pull(hub, repo, issue, "opened", author)
    return issue


def follow(hub: GitHubCore, repo: Repository, issue: Issue, by: Account) -> None:
    """Updates an open pull request after a push, or closes it if the branch is gone."""
    one = issue.pull
    assert one is not None
    assert one.head_repository is not None
    sha = one.head_repository.git.head(one.head_ref)
    if not sha:
        close_pull(hub, repo, issue, by)
        return
    before, one.head_sha = one.head_sha, sha
    one.base_sha = repo.git.head(one.base_ref)
    repo.git.fetch(one.head_repository.git, sha, f"refs/pull/{issue.number}/head")
    touch(hub, issue)
    tell_pull(hub, repo, issue, "synchronize", by, before=before, after=sha)


def close_pull(hub: GitHubCore, repo: Repository, issue: Issue, by: Account) -> None:
    """Closes a pull request without merging it."""
    issue.state, issue.closed_at, issue.closed_by = "closed", hub.world.clock(), by
    touch(hub, issue)
    tell_pull(hub, repo, issue, "closed", by)


def reopen_pull(hub: GitHubCore, repo: Repository, issue: Issue, by: Account) -> None:
    """Reopens a closed pull request at its branch's present head."""
    one = issue.pull
    assert one is not None
    sha = one.head_repository.git.head(one.head_ref) if one.head_repository else ""
    if one.merged_at or not sha:
        raise invalid("PullRequest", "state", "it cannot be opened again")
    assert one.head_repository is not None
    repo.git.fetch(one.head_repository.git, sha, f"refs/pull/{issue.number}/head")
    one.head_sha = sha
    issue.state, issue.closed_at, issue.closed_by = "open", None, None
    touch(hub, issue)
    tell_pull(hub, repo, issue, "reopened", by)


def merge_pull(hub: GitHubCore, repo: Repository, issue: Issue, by: Account) -> str:
    """Merges a pull request; returns the merge commit."""
    one = issue.pull
    assert one is not None
    onto = repo.git.head(one.base_ref)
    sha = repo.git.join(onto, one.head_sha, f"Merge pull request #{issue.number}")
    if sha is None or issue.state == "closed":
        raise RefusedError(405, "Pull Request is not mergeable")
    one.merge_commit, one.merged_at, one.merged_by = sha, hub.world.clock(), by
    issue.state, issue.closed_at, issue.closed_by = "closed", hub.world.clock(), by
    touch(hub, issue)
    repo.git.point(f"refs/heads/{one.base_ref}", sha)
    pushed(hub, repo, one.base_ref, onto, by)
    tell_pull(hub, repo, issue, "closed", by)
    return sha


def set_draft(hub: GitHubCore, repo: Repository, issue: Issue, by: Account, draft: bool) -> None:
    """Makes a pull request a draft, or ready for review."""
    assert issue.pull is not None
    issue.pull.draft = draft
    touch(hub, issue)
    tell_pull(hub, repo, issue, "converted_to_draft" if draft else "ready_for_review", by)


def merge_group(hub: GitHubCore, repo: Repository, number: int, by: Account) -> str:
    """Adds a pull request to a merge queue, which requests checks of its merge group.

    Returns the group's head.
    """
    one = repo.issues[number].pull
    assert one is not None
    base = repo.git.head(one.base_ref)
    head = repo.git.join(base, one.head_sha, f"Merge pull request #{number} into a queue")
    if head is None:
        raise RefusedError(405, "Pull Request is not mergeable")
    ref = f"gh-readonly-queue/{one.base_ref}/pr-{number}-{base}"
    repo.git.point(f"refs/heads/{ref}", head)
    commit = repo.git.describe(head)
    who = {"name": "GitHub", "email": "noreply@github.com"}
    reported = {
        "id": head,
        "tree_id": commit.tree,
        "message": commit.message,
        "author": who,
        "committer": who,
    }
    group = {
        "head_sha": head,
        "head_ref": f"refs/heads/{ref}",
        "base_sha": base,
        "base_ref": f"refs/heads/{one.base_ref}",
        "head_commit": reported | {"timestamp": stamp(hub.world.clock())},
    }
    hub.emit("merge_group", {"action": "checks_requested", "merge_group": group}, repo, by)
    return head
