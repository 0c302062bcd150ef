"""Requests on their way through the double: who asks, what for, and how it is answered or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.github.state import Account, Installation, Repository

if TYPE_CHECKING:
    from tests.github.core import GitHubCore

#: Pages hold at most so many, and so many unless told ("Using pagination in the REST API").
LARGEST_PAGE, USUAL_PAGE = 100, 30


@dataclass(frozen=True)
class Actor:
    """Who asks.

    kind         app (a JWT), installation, user (a personal token), or nobody
    account      whose name stands under what is written
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
        """Whom limits are counted against."""
        if self.installation is not None:
            return f"installation {self.installation.id}"
        return f"{self.kind} {self.account.login if self.account else ''}"

    @property
    def writer(self) -> Account:
        """The account that writes; only those who signed in have one."""
        assert self.account is not None
        return self.account

    def may(self, needs: Sequence[str]) -> bool:
        """Whether a token holds one of the permissions, each such as `issues=write`."""
        if not needs:
            return True
        return any(self._holds(name, level) for name, level in (need.split("=") for need in needs))

    def _holds(self, name: str, level: str) -> bool:
        return self.permissions.get(name) in (("write", "admin") if level == "write" else ("read", "write"))


@dataclass
class RouteResponse:
    """What comes back; a body of None is none."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """GitHub says no, in its own words."""

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
    """Not there, or not for your eyes: GitHub does not say which."""
    return RefusedError(404, "Not Found")


def invalid(resource: str, name: str, message: str = "", code: str = "custom") -> RefusedError:
    """A value that GitHub does not take."""
    error = {"resource": resource, "field": name, "code": code}
    return RefusedError(422, "Validation Failed", errors=[error | ({"message": message} if message else {})])


@dataclass
class Call:
    """One request, understood."""

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
        """A number in the path; anything else is not there."""
        text = self.parameters[name]
        if not text.isdigit():
            raise not_found()
        return int(text)

    def page(self, items: Sequence[Any]) -> list[Any]:
        """The page that was asked for; sets the Link header where there is another."""
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
    """An operation the double can do.

    needs    permissions of an installation's token, one of which is enough; the documentation's
             "Permissions required for GitHub Apps" names them
    app      asked with the App's JWT
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
    """Decorator: how an operation is done."""

    def register(serve: Serve) -> Serve:
        words = re.sub(r"\{(\w+)\}", _group, template)
        ROUTES.append(Route(method, template, re.compile(words), needs, app, creates, serve))
        ROUTES.sort(key=lambda one: sum("{" not in word for word in one.template.split("/")), reverse=True)
        return serve

    return register


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match[1]}>{'.+' if match[1] in _MANY else '[^/]+'})"
