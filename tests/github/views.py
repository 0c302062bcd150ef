"""JSON of the records; `schema_completion.complete` adds the other required properties."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.github.git import Commit
from tests.github.identity import APP_ID, CLIENT_ID, SLUG
from tests.github.state import (
    Account,
    Comment,
    Installation,
    Issue,
    Label,
    Reaction,
    Repository,
    Status,
    stamp,
)

if TYPE_CHECKING:
    from tests.github.core import GitHubCore

Json = dict[str, Any]
WEB = "https://github.com"


def node(kind: str, number: int) -> str:
    """A GraphQL id."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()


def user(hub: GitHubCore, account: Account) -> Json:
    """An account."""
    return {
        "id": account.id,
        "node_id": node("U", account.id),
        "login": account.login,
        "type": account.type,
        "site_admin": False,
        "url": f"{hub.url}/users/{account.login}",
        "html_url": f"{WEB}/{account.login}",
    }


def repository(hub: GitHubCore, repo: Repository) -> Json:
    """A repository."""
    name = repo.full_name
    return {
        "id": repo.id,
        "node_id": node("R", repo.id),
        "name": repo.name,
        "full_name": name,
        "owner": user(hub, repo.owner),
        "private": repo.private,
        "visibility": "private" if repo.private else "public",
        "html_url": f"{WEB}/{name}",
        "url": f"{hub.url}/repos/{name}",
        "clone_url": f"{hub.git_url}/{name}.git",
        "git_url": f"git://github.com/{name}.git",
        "ssh_url": f"git@github.com:{name}.git",
        "default_branch": repo.default_branch,
        "archived": repo.archived,
        "disabled": False,
        "fork": repo.fork_of is not None,
        "has_issues": repo.has_issues,
        "open_issues_count": sum(issue.state == "open" for issue in repo.issues.values()),
        "description": None,
        "created_at": stamp(repo.created_at),
        "updated_at": stamp(repo.created_at),
        "pushed_at": stamp(repo.created_at),
        "permissions": {"admin": False, "push": False, "pull": True},
    }


def label(hub: GitHubCore, repo: Repository, one: Label) -> Json:
    """A label."""
    return {
        "id": one.id,
        "node_id": node("LA", one.id),
        "url": f"{hub.url}/repos/{repo.full_name}/labels/{one.name}",
        "name": one.name,
        "description": one.description,
        "color": one.color,
        "default": False,
    }


def association(repo: Repository, account: Account, pull: bool) -> str:
    """GitHub's author_association of an account."""
    if account.login == repo.owner.login:
        return "OWNER"
    if account.login in repo.roles:
        return "COLLABORATOR"
    theirs = [one for one in repo.issues.values() if one.author is account and one.pull]
    if any(one.pull and one.pull.merged_at for one in theirs):
        return "CONTRIBUTOR"
    return "FIRST_TIME_CONTRIBUTOR" if pull else "NONE"


def issue(hub: GitHubCore, repo: Repository, one: Issue) -> Json:
    """An issue, or a pull request as an issue."""
    url = f"{hub.url}/repos/{repo.full_name}/issues/{one.number}"
    where = "pull" if one.pull else "issues"
    seen: Json = {
        "id": one.id,
        "node_id": node("I", one.id),
        "number": one.number,
        "title": one.title,
        "body": one.body,
        "user": user(hub, one.author),
        "state": one.state,
        "state_reason": one.state_reason,
        "locked": False,
        "labels": [label(hub, repo, repo.labels[name.lower()]) for name in one.labels],
        "assignees": [],
        "assignee": None,
        "milestone": None,
        "comments": sum(comment.issue == one.number for comment in repo.comments.values()),
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.updated_at),
        "closed_at": stamp(one.closed_at),
        "closed_by": one.closed_by and user(hub, one.closed_by),
        "author_association": association(repo, one.author, one.pull is not None),
        "url": url,
        "repository_url": f"{hub.url}/repos/{repo.full_name}",
        "labels_url": url + "/labels{/name}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": f"{WEB}/{repo.full_name}/{where}/{one.number}",
        "reactions": rollup(hub, repo, f"{url}/reactions", one.number, None),
    }
    if one.pull:
        html = f"{WEB}/{repo.full_name}/pull/{one.number}"
        seen["draft"] = one.pull.draft
        seen["pull_request"] = {
            "url": f"{hub.url}/repos/{repo.full_name}/pulls/{one.number}",
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": stamp(one.pull.merged_at),
        }
    return seen


def comment(hub: GitHubCore, repo: Repository, one: Comment) -> Json:
    """A comment."""
    under = repo.issues[one.issue]
    url = f"{hub.url}/repos/{repo.full_name}/issues/comments/{one.id}"
    where = "pull" if under.pull else "issues"
    return {
        "id": one.id,
        "node_id": node("IC", one.id),
        "url": url,
        "html_url": f"{WEB}/{repo.full_name}/{where}/{one.issue}#issuecomment-{one.id}",
        "issue_url": f"{hub.url}/repos/{repo.full_name}/issues/{one.issue}",
        "user": user(hub, one.author),
        "author_association": association(repo, one.author, under.pull is not None),
        "body": one.body,
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.updated_at),
        "performed_via_github_app": None,
        "reactions": rollup(hub, repo, f"{url}/reactions", one.issue, one.id),
    }


CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def rollup(hub: GitHubCore, repo: Repository, url: str, number: int, comment_id: int | None) -> Json:
    """Number of reactions of each kind."""
    found = [one.content for one in reactions(repo, number, comment_id)]
    return {"url": url, "total_count": len(found)} | {kind: found.count(kind) for kind in CONTENTS}


def reactions(repo: Repository, number: int, comment_id: int | None) -> list[Reaction]:
    """The reactions to an issue itself, or to one of its comments."""
    return [one for one in repo.reactions.values() if (one.issue, one.comment) == (number, comment_id)]


def reaction(hub: GitHubCore, one: Reaction) -> Json:
    """A reaction."""
    return {
        "id": one.id,
        "node_id": node("RE", one.id),
        "user": user(hub, one.author),
        "content": one.content,
        "created_at": stamp(one.created_at),
    }


def commit(hub: GitHubCore, repo: Repository, one: Commit) -> Json:
    """A commit."""
    url = f"{hub.url}/repos/{repo.full_name}/commits/{one.sha}"
    who = {"name": one.author, "email": f"{one.author}@example.org", "date": stamp(_at(one))}
    tree = {"sha": one.tree, "url": f"{hub.url}/repos/{repo.full_name}/git/trees/{one.tree}"}
    inner = {"message": one.message, "author": who, "committer": who, "tree": tree, "comment_count": 0}
    account = hub.world.accounts.get(one.author)
    return {
        "sha": one.sha,
        "node_id": node("C", one.at),
        "url": url,
        "html_url": f"{WEB}/{repo.full_name}/commit/{one.sha}",
        "comments_url": f"{url}/comments",
        "commit": inner | {"url": url},
        "author": account and user(hub, account),
        "committer": account and user(hub, account),
        "parents": [{"sha": parent, "url": f"{url}/{parent}"} for parent in one.parents],
    }


def _at(one: Commit) -> datetime:
    return datetime.fromtimestamp(one.at, UTC)


def status(hub: GitHubCore, repo: Repository, one: Status) -> Json:
    """A commit status."""
    return {
        "id": one.id,
        "node_id": node("SC", one.id),
        "url": f"{hub.url}/repos/{repo.full_name}/statuses/{one.sha}",
        "context": one.context,
        "state": one.state,
        "description": one.description,
        "target_url": one.target_url,
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
        "avatar_url": f"{WEB}/{one.author.login}.png",
        "creator": user(hub, one.author),
    }


def app(hub: GitHubCore) -> Json:
    """Our App."""
    return {
        "id": APP_ID,
        "client_id": CLIENT_ID,
        "slug": SLUG,
        "node_id": node("A", APP_ID),
        "owner": user(hub, hub.world.account("assay-developers", "Organization")),
        "name": "Assay",
        "description": None,
        "external_url": "https://assay.example",
        "html_url": f"{WEB}/apps/{SLUG}",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "permissions": dict(hub.permissions),
        "events": list(hub.events),
        "installations_count": len(hub.world.installations),
    }


def installation(hub: GitHubCore, one: Installation) -> Json:
    """An installation."""
    url = f"{hub.url}/app/installations/{one.id}"
    return {
        "id": one.id,
        "app_id": APP_ID,
        "client_id": CLIENT_ID,
        "app_slug": SLUG,
        "target_id": one.account.id,
        "target_type": one.account.type,
        "account": user(hub, one.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{hub.url}/installation/repositories",
        "html_url": f"{WEB}/settings/installations/{one.id}",
        "permissions": dict(one.permissions),
        "events": list(one.events),
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": stamp(one.suspended_at),
    }
