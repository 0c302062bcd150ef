"""The double's API operations, by subject. Importing a module registers them."""

from tests.github.routes import (
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
