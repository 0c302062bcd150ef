"""Search of issues and pull requests: words and the qualifiers repo, is, state, in, author, label."""

from __future__ import annotations

import shlex

from tests.github import views
from tests.github.calls import Call, RefusedError, RouteResponse, route
from tests.github.schema_completion import complete
from tests.github.state import Issue, Repository

#: "Search": a query has at most 256 characters and 1,000 results.
LONGEST_QUERY, MOST_FOUND = 256, 1_000


@route("GET", "/search/issues", "issues=read", "pull_requests=read")
def issues(call: Call) -> RouteResponse:
    """The results in repositories that the caller may see."""
    query = call.query.get("q", "")
    if not query or len(query) > LONGEST_QUERY:
        raise RefusedError(
            422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": "invalid"}]
        )
    terms = shlex.split(query.replace("'", "\\'"))
    found = [
        (repo, one)
        for repo in call.hub.world.repositories.values()
        if not repo.deleted and (not repo.private or repo.id in call.actor.repositories)
        for one in repo.issues.values()
        if all(_fits(repo, one, term) for term in terms)
    ]
    shown = []
    for repo, one in call.page(found[:MOST_FOUND]):
        item = views.issue(call.hub, repo, one) | {"score": 1.0}
        shown.append(complete("issue-search-result-item", item))
    return RouteResponse(
        200,
        {"total_count": len(found), "incomplete_results": False, "search_type": "lexical", "items": shown},
    )


def _fits(repo: Repository, one: Issue, term: str) -> bool:
    name, colon, value = term.partition(":")
    if not colon or name not in _QUALIFIERS:
        return term.lower() in f"{one.title}\n{one.body or ''}".lower()
    if name == "repo":
        return value.lower() == repo.full_name.lower()
    if name in ("is", "state", "type"):
        kinds = {"issue": one.pull is None, "pr": one.pull is not None}
        return kinds.get(value, one.state == value)
    if name == "author":
        return value.replace("app/", "").lower() == one.author.login.removesuffix("[bot]").lower()
    if name == "label":
        return value.lower() in [label.lower() for label in one.labels]
    return True  # `in:` only restricts where words are searched


_QUALIFIERS = ("repo", "is", "state", "type", "author", "label", "in")
