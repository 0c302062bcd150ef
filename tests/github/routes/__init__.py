"""The double's API operations, by subject. Importing a module registers them."""

from tests.github.routes import (
    actions,
    apps,
    checks,
    comments,
    commits,
    contents,
    git_data,
    hooks,
    issues,
    labels,
    pulls,
    reactions,
    repositories,
    search,
    statuses,
)

__all__ = [
    "actions",
    "apps",
    "checks",
    "comments",
    "commits",
    "contents",
    "git_data",
    "hooks",
    "issues",
    "labels",
    "pulls",
    "reactions",
    "repositories",
    "search",
    "statuses",
]
