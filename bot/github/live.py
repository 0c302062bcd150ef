"""The sink that reaches GitHub, through PyGithub.

PyGithub's own defaults would repeat a POST after a 502, which may make two issues; here only GET is
repeated, and the publisher looks before it sends again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import requests
from github import Auth, Github, GithubIntegration, GithubRetry
from github.GithubException import GithubException, RateLimitExceededException

from bot.errors import InfrastructureError, InternalError, RefusalError
from bot.github.limits import SECONDARY_WAIT_S, TIMEOUT_S, WRITE_GAP_S, ThrottledError, marker
from bot.github.requests import Sent, checked_target, request_for
from bot.store.database import now
from bot.store.outbox import Claimed

USER_AGENT = "assay (https://docs.github.com/rest)"
#: Issues this much older than the effect cannot be its own: clocks differ by less.
CLOCK_SKEW = timedelta(minutes=10)
#: Longest wait inside PyGithub for a rate limit, in seconds; beyond it the outbox waits instead.
MAX_RATE_LIMIT_WAIT_S = 5

Finder = Callable[[Github, Claimed, str], Sent | None]
_FINDERS: dict[str, Finder] = {}


def finds(kind: str) -> Callable[[Finder], Finder]:
    """Decorator: how an effect of this kind is looked up by its key."""

    def register(finder: Finder) -> Finder:
        _FINDERS[kind] = finder
        return finder

    return register


class Credentials:
    """Who we are on GitHub: a token, or an App with its private key (PEM text)."""

    def __init__(self, *, token: str = "", app_id: str = "", private_key: str = "") -> None:
        if not token and not (app_id and private_key):
            raise InternalError("GitHub's live mode without a token or an App's id and key")
        self.token, self.app_id, self.private_key = token, app_id, private_key


class GitHub:
    """Creates effects on GitHub or a GitHub Enterprise Server.

    Not for two threads at once: PyGithub's connection mixes up answers.
    """

    live = True

    def __init__(
        self,
        credentials: Credentials,
        api_url: str = "https://api.github.com",
        *,
        timeout_s: int = TIMEOUT_S,
        write_gap_s: float = WRITE_GAP_S,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._clock = clock
        self._options: dict[str, Any] = {
            "base_url": api_url.rstrip("/"),
            "timeout": timeout_s,
            "user_agent": USER_AGENT,
            "per_page": 100,
            "retry": GithubRetry(
                total=3,
                allowed_methods=["GET"],
                max_rate_limit_wait=MAX_RATE_LIMIT_WAIT_S,
                backoff_factor=0.5,
            ),
            "seconds_between_writes": write_gap_s,
            "seconds_between_requests": write_gap_s / 4,  # PyGithub's own proportion
            "lazy": True,  # a repository or commit is only a path to post to, not worth a GET
        }
        self._clients: dict[str, Github] = {}
        self._me = ""
        self._token = credentials.token
        self._app: GithubIntegration | None = None
        if not credentials.token:
            auth = Auth.AppAuth(credentials.app_id, credentials.private_key)
            self._app = GithubIntegration(auth=auth, **self._options)

    def send(self, effect: Claimed) -> Sent:
        """Creates the effect with one POST, the same that dry-run writes down."""
        request = request_for(effect)
        with self._told(effect):
            client = self._client(effect.target)
            _, made = client.requester.requestJsonAndCheck(request.method, request.path, input=request.body)
        return Sent(str(made.get("html_url") or made.get("url") or ""), made.get("number"))

    def find(self, effect: Claimed) -> Sent | None:
        """The effect if GitHub has it from us."""
        finder = _FINDERS.get(effect.kind)
        if finder is None:
            raise InternalError(f"nothing finds effects of kind {effect.kind!r}")
        with self._told(effect):
            return finder(self._client(effect.target), effect, self._name())

    def close(self) -> None:
        """Closes all connections."""
        for client in self._clients.values():
            client.close()
        if self._app is not None:
            self._app.close()

    def _client(self, target: str) -> Github:
        """A client with the right to write to `target`; an App has one for each installation."""
        key = target if self._app is not None else ""
        if key not in self._clients:
            owner, _, name = checked_target(target).partition("/")
            if self._app is None:
                self._clients[key] = Github(auth=Auth.Token(self._token), **self._options)
            else:
                installation = self._app.get_repo_installation(owner, name)
                self._clients[key] = self._app.get_github_for_installation(installation.id)
        return self._clients[key]

    def _name(self) -> str:
        """The login our texts appear under."""
        if not self._me:
            if self._app is not None:
                self._me = f"{self._app.get_app().slug}[bot]"
            else:
                self._me = self._client("").get_user().login
        return self._me

    @contextmanager
    def _told(self, effect: Claimed) -> Iterator[None]:
        """Turns PyGithub's and requests' errors into ours, which say what to do."""
        try:
            yield
        except RateLimitExceededException as error:
            raise _throttled(error, self._clock()) from error
        except GithubException as error:
            if error.status in (401, 404):  # the App may have been installed anew: ask again
                self._clients.pop(effect.target, None)
            raise _explained(error, effect, self._clock()) from error
        except requests.RequestException as error:
            raise InfrastructureError(
                f"GitHub did not answer: {type(error).__name__}; tried again later"
            ) from error


@finds("issue")
def _find_issue(client: Github, effect: Claimed, me: str) -> Sent | None:
    """Our own issue that carries the marker: anybody may quote it, so the author counts too."""
    repository = client.get_repo(effect.target)
    since = effect.created_at - CLOCK_SKEW
    for issue in repository.get_issues(state="all", since=since, sort="created", direction="asc"):
        if issue.user.login == me and marker(effect.key) in (issue.body or ""):
            return Sent(issue.html_url, issue.number)
    return None


@finds("check_run")
def _find_check_run(client: Github, effect: Claimed, _me: str) -> Sent | None:
    """The check run with our key as its external id, which only Apps can set."""
    repository = client.get_repo(effect.target)
    commit = repository.get_commit(effect.payload["head_sha"])
    for run in commit.get_check_runs(check_name=effect.payload["name"], filter="all"):
        if run.external_id == effect.key:
            return Sent(run.html_url)
    return None


def _explained(error: GithubException, effect: Claimed, at: datetime) -> Exception:
    """Which of our errors an answer of GitHub is, and what to do about it."""
    status, said = error.status, _message(error)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if status == 429 or (status == 403 and ("retry-after" in headers or "rate limit" in said.lower())):
        return _throttled(error, at)
    where = f"GitHub answered {status} for {effect.target}"
    if status == 401:
        return InfrastructureError(
            f"{where}: {said}; it does not accept our credentials. Check ASSAY_GITHUB_TOKEN, or "
            "ASSAY_GITHUB_APP_ID, ASSAY_GITHUB_PRIVATE_KEY_FILE and this machine's clock"
        )
    if status == 403:
        need = headers.get("x-accepted-github-permissions", "issues=write and checks=write")
        return RefusalError(
            f"{where}: {said}; the App lacks a permission ({need}). Grant it in the App's settings; "
            "the repository's owner must then accept it. Only Apps may create check runs, tokens may not"
        )
    advice = {
        404: "the repository is gone or renamed, or the App is not installed there. Install it, or take "
        "the target off the list",
        410: "the repository has issues switched off. Switch them on, or set reports.mode to dry-run",
        422: "it does not accept the content. That is likely a bug of Assay: please report it",
    }.get(status)
    if advice is None and status >= 500:
        return InfrastructureError(f"{where}: {said}; tried again later")
    return RefusalError(f"{where}: {said}; {advice or 'nothing more is known'}")


def _message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    details = [str(item.get("message") or item.get("code")) for item in _dicts(data.get("errors"))]
    return "; ".join([str(data.get("message") or error.message or "no reason given"), *details])[:500]


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _throttled(error: GithubException, at: datetime) -> ThrottledError:
    """How long GitHub wants us to wait: `retry-after`, else until the limit is reset, else a minute."""
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    wait = SECONDARY_WAIT_S
    if headers.get("retry-after", "").isdigit():
        wait = float(headers["retry-after"])
    elif headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        wait = max(1.0, float(headers["x-ratelimit-reset"]) - at.timestamp())
    return ThrottledError(f"GitHub asks to slow down: {_message(error)}; tried again in {wait:.0f} s", wait)
