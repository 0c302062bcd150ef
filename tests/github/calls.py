"""Requests to the double: caller, route, parameters, response or error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.github.state import Account, Installation, Repository

if TYPE_CHECKING:
    from tests.github.core import GitHubCore

#: Default and maximal page sizes ("Using pagination in the REST API").
LARGEST_PAGE, USUAL_PAGE = 100, 30


@dataclass(frozen=True)
class Actor:
    """The caller.

    kind         app (a JWT), installation, user (a personal token), or nobody
    account      the author of what it writes
    permissions  of an installation's token
    repositories the ids such a token reaches
    """

    kind: str
    account: Account | None = None
    installation: Installation | None = None
    permissions: dict[str, str] = field(default_factory=dict)
    repositories: frozenset[int] = frozenset()

    @property
    def key(self) -> str:
        """The key of its rate limits."""
        if self.installation is not None:
            return f"installation {self.installation.id}"
        return f"{self.kind} {self.account.login if self.account else ''}"

    @property
    def writer(self) -> Account:
        """The account that writes; raises RefusedError for anonymous callers."""
        assert self.account is not None
        return self.account

    def may(self, needs: Sequence[str]) -> bool:
        """Whether the token has one of the permissions, each such as `issues=write`."""
        if not needs:
            return True
        return any(self._holds(name, level) for name, level in (need.split("=") for need in needs))

    def _holds(self, name: str, level: str) -> bool:
        return self.permissions.get(name) in (("write", "admin") if level == "write" else ("read", "write"))


@dataclass
class RouteResponse:
    """A response; a body of None is empty."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """An error response with GitHub's message."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: dict[str, str] | None = None,
        errors: list[Any] | None = None,
    ) -> None:
        super().__init__(message)
        url = "https://docs.github.com/rest"
        body: dict[str, Any] = {"message": message, "documentation_url": url, "status": str(status)}
        if errors:
            body["errors"] = errors
        self.answer = RouteResponse(status, body, headers or {})


def not_found() -> RefusedError:
    """A 404, for missing and for hidden resources alike."""
    return RefusedError(404, "Not Found")


def invalid(resource: str, name: str, message: str = "", code: str = "custom") -> RefusedError:
    """A 422 for an invalid value."""
    error = {"resource": resource, "field": name, "code": code}
    return RefusedError(422, "Validation Failed", errors=[error | ({"message": message} if message else {})])


@dataclass
class Call:
    """One parsed request."""

    hub: GitHubCore
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    actor: Actor
    parameters: dict[str, str] = field(default_factory=dict)
    found: Repository | None = None
    link: str = ""

    @property
    def repository(self) -> Repository:
        """The repository of a path below /repos."""
        assert self.found is not None
        return self.found

    def number(self, name: str) -> int:
        """A number in the path; raises a 404 for anything else."""
        text = self.parameters[name]
        if not text.isdigit():
            raise not_found()
        return int(text)

    def page(self, items: Sequence[Any]) -> list[Any]:
        """The requested page; sets the Link header if there is another."""
        size = int(self.query.get("per_page", USUAL_PAGE))
        size = min(size, LARGEST_PAGE) or USUAL_PAGE
        number = max(1, int(self.query.get("page", 1)))
        last = max(1, -(-len(items) // size))
        near = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
        wanted = [*(["prev", "first"] if number > 1 else []), *(["next", "last"] if number < last else [])]
        self.link = ", ".join(f'<{self.hub.url}{self._paged(near[rel])}>; rel="{rel}"' for rel in wanted)
        return list(items[(number - 1) * size : number * size])

    def _paged(self, number: int) -> str:
        rest = {name: value for name, value in self.query.items() if name != "page"} | {"page": str(number)}
        return f"{self.path}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in rest.items())


Serve = Callable[[Call], RouteResponse]


@dataclass(frozen=True)
class Route:
    """An operation of the double.

    needs    permissions of an installation's token, one of which is enough; the documentation's
             "Permissions required for GitHub Apps" names them
    app      requires the App's JWT
    creates  content that counts against the limit on creations
    """

    method: str
    template: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    app: bool
    creates: bool
    serve: Serve


ROUTES: list[Route] = []
_MANY = {"path", "ref", "basehead", "branch"}


def route(
    method: str, template: str, *needs: str, app: bool = False, creates: bool = False
) -> Callable[[Serve], Serve]:
    """Decorator: registers an operation."""

    def register(serve: Serve) -> Serve:
        words = re.sub(r"\{(\w+)\}", _group, template)
        ROUTES.append(Route(method, template, re.compile(words), needs, app, creates, serve))
        ROUTES.sort(key=lambda one: sum("{" not in word for word in one.template.split("/")), reverse=True)
        return serve

    return register


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match[1]}>{'.+' if match[1] in _MANY else '[^/]+'})"
