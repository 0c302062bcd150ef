"""Reads the present state from GitHub. Webhooks are only hints.

Methods raise the errors of `Client`: NotFoundError (a RefusalError) if the resource does not exist,
RefusalError without access, ThrottledError and InfrastructureError if a retry may succeed. Repeated reads of
unchanged resources do not count in the rate limit.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import quote

from github.Installation import Installation
from github.Repository import Repository

from bot.github.client import Client
from bot.github.github_api import GitHubApi
from bot.github.identity import LOCATOR, READER
from bot.github.requester import raw
from bot.github.requests import Request, checked_target
from bot.github.resources import (
    AppInfo,
    CommentInfo,
    DeliveryInfo,
    HookInfo,
    InstallationInfo,
    IssueInfo,
    PullInfo,
    RepositoryInfo,
    parse,
    parse_each,
)
from bot.github.responses import expected_shape

MAX_SEARCH_RESULTS = 30  # results of one search
#: Characters of a search: GitHub refuses more than 256, operators not counted.
MAX_QUERY_LENGTH = 200


class Reader:
    """Reads through the API. Thread-safe."""

    def __init__(self, github_api: GitHubApi) -> None:
        self._github_api = github_api

    @property
    def is_app(self) -> bool:
        """Whether installations, deliveries and the App itself can be read."""
        return self._github_api.is_app

    def login(self) -> str:
        """The login of our texts."""
        return self._github_api.identity.login()

    def repository(self, target: str) -> RepositoryInfo:
        """A repository under its present name, which may differ from `target`."""
        return parse(RepositoryInfo.of, self._repository(target).complete().raw_data)

    def branch_head(self, target: str, branch: str) -> str:
        """The commit of a branch."""
        found = self._repository(target).get_git_ref(f"heads/{branch}").complete().raw_data
        with expected_shape(f"the branch {branch} of {target}"):
            return str(found["object"]["sha"])

    def pull(self, target: str, number: int) -> PullInfo:
        """A pull request."""
        return parse(PullInfo.of, self._repository(target).get_pull(number).complete().raw_data)

    def pulls(self, target: str) -> list[PullInfo]:
        """The open pull requests, last updated first."""
        found = self._repository(target).get_pulls(state="open", sort="updated", direction="desc")
        return parse_each(PullInfo.of, map(raw, found))

    def permission(self, target: str, login: str) -> str:
        """The role of a login in a repository: admin, maintain, write, triage, read or none."""
        path = f"/repos/{target}/collaborators/{quote(login, safe='')}/permission"
        found = self._client(target).get_or_none(path)
        if found is None:
            return "none"
        # Custom roles of organizations have other names; GitHub also returns their base role.
        with expected_shape(f"what {login} may do in {target}"):
            role = str(found.get("role_name") or found["permission"])
            return role if role in _ROLES else str(found["permission"])

    def issue(self, target: str, number: int) -> IssueInfo:
        """An issue or a pull request."""
        return parse(IssueInfo.of, self._repository(target).get_issue(number).complete().raw_data)

    def search_issues(self, target: str, words: str, *, state: str = "") -> list[IssueInfo]:
        """At most MAX_SEARCH_RESULTS issues with all the words, best match first; state "" is any."""
        query = f"{_search_terms(words)} repo:{checked_target(target)} is:issue" + (
            f" state:{state}" if state else ""
        )
        github = self._client(target).api(per_page=MAX_SEARCH_RESULTS).github()
        with expected_shape("a search"):
            return parse_each(IssueInfo.of, map(raw, github.search_issues(query).get_page(0)))

    def comments_since(self, target: str, since: datetime) -> list[CommentInfo]:
        """Comments on issues and pull requests created or updated since, oldest update first."""
        found = self._repository(target).get_issues_comments(sort="updated", direction="asc", since=since)
        return parse_each(CommentInfo.of, map(raw, found))

    def app(self) -> AppInfo:
        """The App. This and the following methods raise RefusalError if `is_app` is false."""
        return parse(AppInfo.of, self._github_api.app.integration().get_app().raw_data, self.hook_config())

    def hook_config(self) -> HookInfo:
        """The App's webhook configuration."""
        return parse(HookInfo.of, self._github_api.app.app.get("/app/hook/config"))

    def deliveries(self, since: datetime) -> list[DeliveryInfo]:
        """Delivery attempts since then, newest first; GitHub keeps three days."""
        found = []
        for item in self._github_api.app.app.pages("/app/hook/deliveries"):
            delivery = parse(DeliveryInfo.of, item)
            if delivery.delivered_at < since:
                break
            found.append(delivery)
        return found

    def redeliver(self, delivery: int) -> None:
        """Requests a redelivery."""
        self._github_api.app.app.send(Request("POST", f"/app/hook/deliveries/{delivery}/attempts", None))

    def installations(self) -> list[InstallationInfo]:
        """The App's installations."""
        return parse_each(
            InstallationInfo.of, map(raw, self._github_api.app.integration().get_installations())
        )

    def installation_repositories(self, installation: int) -> list[RepositoryInfo]:
        """The repositories of an installation."""
        api = self._github_api.app.client_for_installation(installation, LOCATOR).api()
        found = Installation(api, {}, {"id": installation}).get_repos()
        with expected_shape(f"installation {installation}"):
            return parse_each(RepositoryInfo.of, map(raw, found))

    def _repository(self, target: str) -> Repository:
        return self._client(target).api().repository(target)

    def _client(self, target: str) -> Client:
        return self._github_api.client(checked_target(target), READER)


def _search_terms(words: str) -> str:
    """The words without search operators: they come from compilers' messages."""
    found = (word for word in _WORD.findall(words) if word not in ("AND", "OR", "NOT"))
    return " ".join(found)[:MAX_QUERY_LENGTH]


_WORD = re.compile(r"[^\W_][\w.]*")
_ROLES: Any = frozenset({"admin", "maintain", "write", "triage", "read", "none"})
