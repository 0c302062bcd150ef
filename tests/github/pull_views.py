"""JSON of pull requests, their files and check runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.github import views
from tests.github.state import CheckRun, CheckSuite, Issue, Repository, stamp
from tests.github.views import WEB, Json, node

if TYPE_CHECKING:
    from tests.github.core import GitHubCore


def pull(hub: GitHubCore, repo: Repository, issue: Issue) -> Json:
    """A pull request; values from git are computed each time."""
    seen, one = views.issue(hub, repo, issue), issue.pull
    assert one is not None
    url = f"{hub.url}/repos/{repo.full_name}/pulls/{issue.number}"
    html = f"{WEB}/{repo.full_name}/pull/{issue.number}"
    files = repo.git.files(one.base_sha, one.head_sha)
    commits = repo.git.between(one.base_sha, one.head_sha)
    shared = ("number", "title", "body", "user", "state", "locked", "labels", "assignees", "assignee", "id")
    times = (
        "created_at",
        "updated_at",
        "closed_at",
        "author_association",
        "comments",
        "node_id",
        "milestone",
    )
    return {name: seen[name] for name in (*shared, *times)} | {
        "url": url,
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": seen["url"],
        "comments_url": seen["comments_url"],
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "review_comment_url": url + "/comments{/number}",
        "statuses_url": f"{hub.url}/repos/{repo.full_name}/statuses/{one.head_sha}",
        "head": _end(hub, one.head_repository, one.head_ref, one.head_sha),
        "base": _end(hub, repo, one.base_ref, one.base_sha),
        "_links": {name: {"href": url} for name in _LINKS},
        "draft": one.draft,
        "merged": one.merged_at is not None,
        "merged_at": stamp(one.merged_at),
        "merged_by": one.merged_by and views.user(hub, one.merged_by),
        "merge_commit_sha": one.merge_commit,
        "auto_merge": None,
        "active_lock_reason": None,
        "maintainer_can_modify": one.head_repository is not repo,
        "requested_reviewers": [],
        "requested_teams": [],
        **_mergeable(repo, issue),
        "review_comments": 0,
        "commits": len(commits),
        "additions": sum(file["additions"] for file in files),
        "deletions": sum(file["deletions"] for file in files),
        "changed_files": len(files),
    }


_LINKS = ("self", "html", "issue", "comments", "review_comments", "review_comment", "commits", "statuses")


def _end(hub: GitHubCore, repo: Repository | None, ref: str, sha: str) -> Json:
    """The head or the base of a pull request."""
    owner = repo.owner if repo else hub.world.account("ghost")
    return {
        "label": f"{owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": views.user(hub, owner),
        "repo": repo and views.repository(hub, repo),
    }


def _mergeable(repo: Repository, issue: Issue) -> Json:
    one = issue.pull
    assert one is not None
    if issue.state == "closed":
        return {"mergeable": None, "mergeable_state": "unknown", "rebaseable": None}
    clean = repo.git.merge(repo.git.head(one.base_ref), one.head_sha) is not None
    state = "draft" if one.draft else "clean" if clean else "dirty"
    return {"mergeable": clean, "mergeable_state": state, "rebaseable": clean}


def file(hub: GitHubCore, repo: Repository, sha: str, one: Json) -> Json:
    """A file changed by a pull request or comparison."""
    web = f"{WEB}/{repo.full_name}"
    return one | {
        "blob_url": f"{web}/blob/{sha}/{one['filename']}",
        "raw_url": f"{web}/raw/{sha}/{one['filename']}",
        "contents_url": f"{hub.url}/repos/{repo.full_name}/contents/{one['filename']}?ref={sha}",
    }


def briefly(hub: GitHubCore, repo: Repository, sha: str) -> list[Json]:
    """The open pull requests of a head, as in check runs. Those from forks are left out."""
    found = []
    for issue in repo.issues.values():
        one = issue.pull
        if one and issue.state == "open" and one.head_sha == sha and one.head_repository is repo:
            place = {"id": repo.id, "url": f"{hub.url}/repos/{repo.full_name}", "name": repo.name}
            found.append(
                {
                    "id": issue.id,
                    "number": issue.number,
                    "url": f"{hub.url}/repos/{repo.full_name}/pulls/{issue.number}",
                    "head": {"ref": one.head_ref, "sha": one.head_sha, "repo": place},
                    "base": {"ref": one.base_ref, "sha": one.base_sha, "repo": place},
                }
            )
    return found


def check_run(hub: GitHubCore, repo: Repository, run: CheckRun) -> Json:
    url = f"{hub.url}/repos/{repo.full_name}/check-runs/{run.id}"
    printed = run.fields
    output = printed.get("output", {})
    return {
        "id": run.id,
        "node_id": node("CR", run.id),
        "name": printed["name"],
        "head_sha": run.head_sha,
        "external_id": printed.get("external_id", ""),
        "url": url,
        "html_url": f"{WEB}/{repo.full_name}/runs/{run.id}",
        "details_url": printed.get("details_url") or "https://assay.example",
        "status": printed.get("status", "queued"),
        "conclusion": printed.get("conclusion"),
        "started_at": printed.get("started_at"),
        "completed_at": printed.get("completed_at"),
        "output": {
            "title": output.get("title"),
            "summary": output.get("summary"),
            "text": output.get("text"),
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": run.suite.id},
        "app": views.app(hub),
        "pull_requests": briefly(hub, repo, run.head_sha),
    }


def annotation(hub: GitHubCore, repo: Repository, sha: str, one: dict[str, Any]) -> Json:
    blob = f"{WEB}/{repo.full_name}/blob/{sha}/{one['path']}"
    empty = {"start_column": None, "end_column": None, "title": None, "raw_details": None}
    return empty | one | {"blob_href": blob}


def check_suite(hub: GitHubCore, repo: Repository, suite: CheckSuite) -> Json:
    url = f"{hub.url}/repos/{repo.full_name}/check-suites/{suite.id}"
    runs = [run for run in repo.check_runs.values() if run.suite is suite]
    ended = bool(runs) and all(run.fields.get("status") == "completed" for run in runs)
    commit = repo.git.describe(suite.head_sha)
    who = {"name": commit.author, "email": f"{commit.author}@example.org"}
    at = stamp(suite.created_at)
    return {
        "id": suite.id,
        "node_id": node("CS", suite.id),
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": "completed" if ended else "queued",
        "conclusion": runs[-1].fields.get("conclusion") if ended else None,
        "url": url,
        "before": commit.parents[0] if commit.parents else None,
        "after": suite.head_sha,
        "pull_requests": briefly(hub, repo, suite.head_sha),
        "app": views.app(hub),
        "repository": views.repository(hub, repo),
        "created_at": at,
        "updated_at": at,
        "head_commit": {
            "id": commit.sha,
            "tree_id": commit.tree,
            "message": commit.message,
            "timestamp": at,
            "author": who,
            "committer": who,
        },
        "latest_check_runs_count": len(runs),
        "check_runs_url": f"{url}/check-runs",
    }
