"""PyGithub's methods, with requests that `Client` sends.

PyGithub builds paths, parameters and bodies, and follows pages. Redirects, retries, rate limits, conditional
requests, tokens and errors are those of `Client`, because PyGithub's own requester drops the query of
redirects, treats 307 as success, sleeps through `retry-after` and is not thread-safe.

All objects are lazy: only `complete()` reads them. Read a response with `raw`: an attribute of PyGithub that
the response lacks would cost a second request.

PyGithub has no method, or one that cannot be used, for these; `Client` or `ApiRequester.send` sends them:

- tokens of an installation: PyGithub cannot limit them to repositories, and cannot revoke them
- the App's webhook and its deliveries, and the conversion of a manifest
- a collaborator's permission: PyGithub returns one of the two fields that Assay reads from one response
- the download of an artifact (`bot.github.workflow_artifacts`): PyGithub has none
- labels added to an issue: PyGithub sends a bare array, which GitHub's description of its API does not have
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol, TypedDict

from github import Auth, Github, GithubIntegration
from github.GithubObject import CompletableGithubObject, GithubObject
from github.Repository import Repository
from github.Requester import Requester

from bot.errors import InternalError
from bot.github.limits import PER_PAGE, TIMEOUT_S
from bot.github.requests import Request, checked_target
from bot.github.responses import ApiResponse, NotFoundError, UnexpectedResponseError
from bot.github.transport import PUBLIC_API, USER_AGENT


class Page(TypedDict):
    """A response to a GET: its JSON, and the URL of the next page, "" for none."""

    value: Any
    next: str


class Sender(Protocol):
    """Sends requests and raises our errors: `bot.github.client.Client`, in dry runs a recorder."""

    def read(self, path: str, parameters: Mapping[str, Any]) -> Page:
        """The response to a GET."""
        ...

    def send(self, request: Request, permission: str = "") -> ApiResponse:
        """The response to a request that changes something."""
        ...


class ApiRequester(Requester):
    """The requester of PyGithub's objects. Not thread-safe: make one for each use.

    permission  what its writes need, as GitHub writes it
    answer      the JSON of the last write
    """

    def __init__(self, sender: Sender, permission: str = "", per_page: int = PER_PAGE) -> None:
        super().__init__(
            auth=None,
            base_url=PUBLIC_API,  # only a name here: paths below the API's root go to the sender
            timeout=TIMEOUT_S,
            user_agent=USER_AGENT,
            per_page=per_page,
            verify=True,
            retry=None,
            pool_size=None,
            lazy=True,
        )
        self._sender, self._permission = sender, permission
        self.answer: Any = None

    def needing(self, permission: str) -> ApiRequester:
        """A requester whose writes need another permission."""
        return ApiRequester(self._sender, permission)

    def repository(self, target: str) -> Repository:
        """A repository, not read yet."""
        return Repository(self, url=f"/repos/{checked_target(target)}")

    def github(self) -> Github:
        """What belongs to no repository: searches, the token's owner."""
        made = Github(lazy=True)
        vars(made)["_Github__requester"] = self  # its constructor takes none
        return made

    def integration(self, auth: Auth.AppAuth) -> GithubIntegration:
        """What belongs to an App."""
        made = GithubIntegration(auth=auth, lazy=True)
        vars(made)["_GithubIntegration__requester"] = self
        return made

    def send(self, request: Request) -> ApiResponse:
        """A write that PyGithub has no method for."""
        response = self._sender.send(request, self._permission)
        self.answer = response.data
        return response

    def requestJsonAndCheck(  # noqa: N802
        self,
        verb: str,
        url: str,
        parameters: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        input: Any | None = None,  # noqa: A002
        follow_302_redirect: bool = False,
    ) -> tuple[dict[str, Any], Any]:
        """Headers and JSON of a response.

        PyGithub's own headers are dropped: they name previews that are part of the API by now.

        Raises the errors of `Client`, and UnexpectedResponseError if the JSON is not an object, or not a list
        where one was requested: PyGithub would read it as an empty one.
        """
        del headers, follow_302_redirect
        if verb != "GET":
            return {}, _checked_object(self.send(Request(verb, url, input)).data, url)
        page = self._sender.read(url, parameters or {})
        if _is_list(url, parameters or {}):
            _check_items(page["value"], url)
        else:
            _checked_object(page["value"], url)
        following = page["next"].replace(" ", "%20")  # PyGithub splits the header at spaces
        return ({"link": f'<{following}>; rel="next"'} if following else {}), page["value"]

    def withAuth(self, auth: Auth.Auth | None) -> Requester:  # noqa: N802
        """Itself: the sender authenticates."""
        del auth
        return self

    def withLazy(self, lazy: object) -> Requester:  # noqa: N802
        """Itself: everything is lazy."""
        del lazy
        return self

    def withApiVersion(self, api_version: str | None) -> Requester:  # noqa: N802
        """Itself: the transport sets the version."""
        del api_version
        return self

    def _refuse(self, *arguments: object, **_more: object) -> NoReturn:
        raise InternalError(f"PyGithub sends {arguments[:2]} past Assay's rate limits; send it with `Client`")

    requestJson = requestMultipart = requestBlob = requestMemoryBlobAndCheck = getStream = _refuse  # noqa: N815


def raw(made: GithubObject) -> Any:
    """The JSON that an object was made from; unlike `raw_data`, without another request."""
    return made._rawData


def exists(made: CompletableGithubObject) -> bool:
    """Whether GitHub has the resource; reads it."""
    try:
        made.complete()
    except NotFoundError:
        return False
    return True


def _is_list(url: str, parameters: Mapping[str, Any]) -> bool:
    """Whether PyGithub requests a list: it says how many items a page has, except for searches."""
    return "per_page" in parameters or "per_page=" in url or url.startswith("/search/")


def _check_items(data: Any, url: str) -> None:
    lists = [one for one in data.values() if isinstance(one, list)] if isinstance(data, dict) else [data]
    items = lists[0] if lists else None
    if not isinstance(items, list) or not all(_is_object(one) for one in items):
        raise UnexpectedResponseError(
            f"GitHub answered {url} without a list of items; it is tried again later"
        )


def _checked_object(data: Any, url: str) -> Any:
    if not _is_object(data):
        raise UnexpectedResponseError(
            f"GitHub answered {url} with {str(data)[:80]!r} instead of an object; a proxy may have answered "
            "instead of GitHub. It is tried again later"
        )
    return data


def _is_object(data: Any) -> bool:
    """Whether PyGithub can make an object from it: it looks for an address below `_links` at once."""
    return isinstance(data, dict) and isinstance(data.get("_links", {}), dict)
