"""Identities on GitHub: an App with its installations, or, to try Assay, a token.

An installation's token has the permissions of one `TokenScope` for an hour. It is cached until shortly before
it expires, revoked at shutdown, and never written to disk.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth, GithubIntegration

from bot.errors import AssayError, InternalError, RefusalError, SettingsError
from bot.github.client import Authenticator, Client
from bot.github.requester import raw
from bot.github.requests import Request, checked_target
from bot.github.resources import parse_time
from bot.github.responses import NotFoundError, expected_shape

TOKEN_ACCOUNT = "token"  # the account of a token
APP_ACCOUNT = "app"
#: Tokens that expire within this time are not used: a fetch or a report may take minutes.
REFRESH_MARGIN = timedelta(minutes=5)
#: How long an installation's repository is cached: it may be transferred, or the App reinstalled.
INSTALLATION_TTL = timedelta(minutes=10)
NEVER = datetime.min.replace(tzinfo=UTC)  # the lookup time of a stale cache entry

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class TokenScope:
    """The purpose of a token, and its permissions."""

    name: str
    permissions: Mapping[str, str] = field(hash=False)


READER = TokenScope(
    "reader", {"contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read"}
)
REPORTER = TokenScope(
    "reporter", {"checks": "write", "issues": "write", "metadata": "read", "pull_requests": "write"}
)
PROPOSER = TokenScope("proposer", {"contents": "write", "metadata": "read", "pull_requests": "write"})
#: For what the repository's own workflows built; needed by the provisioner `artifact` alone.
BUILDS = TokenScope("builds", {"actions": "read", "metadata": "read"})
#: For the repository with the workflow of runners; the App needs `actions` there only.
DISPATCHER = TokenScope("dispatcher", {"actions": "write", "metadata": "read"})
#: For the branch of a proposed test, in the target or in a fork.
PUSHER = TokenScope("pusher", {"contents": "write", "metadata": "read"})
TOKEN_SCOPES = (READER, REPORTER, PROPOSER, PUSHER)
#: For a repository's id, before a token can be limited to it.
LOCATOR = TokenScope("locator", {"metadata": "read"})


class Credentials:
    """Credentials: a token, or an App with its private key (PEM text)."""

    def __init__(self, *, token: str = "", app_id: str = "", private_key: str = "") -> None:
        if not token and not (app_id and private_key):
            raise InternalError("GitHub's live mode without a token or an App's id and key")
        self.token, self.app_id, self.private_key = token, app_id, private_key


class Identity(Protocol):
    """An account that acts on GitHub.

    is_app   whether it is an App: only Apps have installations, deliveries and check runs
    """

    is_app: bool

    def client(self, target: str, scope: TokenScope) -> Client:
        """A client with `scope` for a repository. Raises RefusalError without access."""
        ...

    def token(self, target: str, scope: TokenScope) -> str:
        """A token for git."""
        ...

    def account(self, target: str) -> str:
        """The account whose limits count there, "" if unknown."""
        ...

    def installation_changed(self, target: str) -> bool:
        """Whether another installation has the repository now, so that a retry may succeed."""
        ...

    def login(self) -> str:
        """The login of our texts."""
        ...

    def close(self) -> None:
        """Revokes the issued tokens."""
        ...


#: Makes a client for an authenticator.
Connect = Callable[[Authenticator], Client]


@dataclass(frozen=True)
class TokenAuthenticator:
    """Authenticates with a token."""

    value: str = field(repr=False)
    account: str = TOKEN_ACCOUNT

    def authorization(self) -> str:
        """The header's value."""
        return f"token {self.value}"

    def refresh(self) -> bool:
        """False: there is no other token."""
        return False


@dataclass(frozen=True)
class AppAuthenticator:
    """Authenticates as the App, with a JWT of a few minutes."""

    auth: Auth.AppAuth
    account: str = APP_ACCOUNT

    def authorization(self) -> str:
        """The header's value. Raises SettingsError if the private key is invalid."""
        return f"Bearer {self.auth.token}"

    def refresh(self) -> bool:
        """False: a JWT is new each time, so if it is rejected, the key or the clock is wrong."""
        return False


def app_auth(credentials: Credentials) -> Auth.AppAuth:
    """The App's authentication. Its key is parsed once, which takes a tenth of a second."""

    def sign(claims: dict[str, Any]) -> str:
        return jwt.encode(claims, _key(credentials.private_key), algorithm="RS256")

    return Auth.AppAuth(credentials.app_id, sign_func=sign)


@functools.lru_cache(maxsize=4)
def _key(pem: str) -> RSAPrivateKey:
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise SettingsError(f"ASSAY_GITHUB_PRIVATE_KEY_FILE holds no private key: {error}") from error
    if not isinstance(key, RSAPrivateKey):
        raise SettingsError(
            "ASSAY_GITHUB_PRIVATE_KEY_FILE holds a private key, but not the RSA key of an App"
        )
    return key


class TokenIdentity:
    """The owner of a token, with all permissions of the owner except for check runs."""

    is_app = False

    def __init__(self, token: str, connect: Connect) -> None:
        self._token, self._login = token, ""
        self._client = connect(TokenAuthenticator(token))

    def client(self, target: str, scope: TokenScope) -> Client:
        """The same client for all: a token's permissions cannot be reduced."""
        del scope
        checked_target(target)
        return self._client

    def token(self, target: str, scope: TokenScope) -> str:
        """The token itself."""
        del target, scope
        return self._token

    def account(self, target: str) -> str:
        """TOKEN_ACCOUNT."""
        del target
        return TOKEN_ACCOUNT

    def installation_changed(self, target: str) -> bool:
        """False: a token has no installation."""
        del target
        return False

    def login(self) -> str:
        """The token's owner."""
        if not self._login:
            with expected_shape("the token's owner"):
                self._login = str(self._client.api().github().get_user().complete().raw_data["login"])
        return self._login

    def close(self) -> None:
        """Does nothing: the token is not ours to revoke."""


@dataclass(frozen=True)
class _Token:
    value: str = field(repr=False)
    expires_at: datetime


class AppIdentity:
    """An App: one client for each installation and scope. Thread-safe."""

    is_app = True

    def __init__(self, auth: Auth.AppAuth, connect: Connect, clock: Callable[[], datetime]) -> None:
        self.app = connect(AppAuthenticator(auth))
        self._auth, self._connect, self._clock = auth, connect, clock
        self._login = ""
        self._installations: dict[str, tuple[int, datetime]] = {}  # and time of the lookup
        self._repositories: dict[tuple[str, int], tuple[int, datetime]] = {}  # the same of their ids
        self._tokens: dict[tuple[int, str, tuple[int, ...]], _Token] = {}
        self._lock = threading.RLock()

    def client(self, target: str, scope: TokenScope) -> Client:
        """A client of the target's installation, for that repository only."""
        return self._connect(self._authenticator(target, scope))

    def integration(self) -> GithubIntegration:
        """PyGithub's methods of the App."""
        return self.app.api().integration(self._auth)

    def client_for_installation(self, installation: int, scope: TokenScope) -> Client:
        """A client for all repositories of an installation."""
        return self._connect(InstallationAuthenticator(self, installation, scope))

    def token(self, target: str, scope: TokenScope) -> str:
        """A token for git and that repository only, valid for at least some minutes."""
        return self._authenticator(target, scope).token()

    def _authenticator(self, target: str, scope: TokenScope) -> InstallationAuthenticator:
        installation = self.installation(target)
        repository = self._repository(target, installation)
        return InstallationAuthenticator(self, installation, scope, (repository,), target)

    def account(self, target: str) -> str:
        """The installation's id, if known."""
        known = self._installations.get(target.lower())
        return str(known[0]) if known else ""

    def login(self) -> str:
        """The login of the App."""
        if not self._login:
            with expected_shape("the App"):
                self._login = f"{self.integration().get_app().raw_data['slug']}[bot]"
        return self._login

    def close(self) -> None:
        """Revokes every valid token."""
        with self._lock:
            tokens, self._tokens = self._tokens, {}
        for one in tokens.values():
            if one.expires_at <= self._clock():
                continue
            try:
                self._connect(TokenAuthenticator(one.value, APP_ACCOUNT)).send(
                    Request("DELETE", "/installation/token", None)
                )
            except AssayError as error:
                log.warning("a token was not given back; it ends by itself", reason=str(error))

    def installation(self, target: str) -> int:
        """The App's installation in a repository. Raises RefusalError if there is none."""
        name, at = checked_target(target).lower(), self._clock()
        known = self._installations.get(name)
        if known is None or known[1] + INSTALLATION_TTL <= at:
            found = self.integration().get_repo_installation(*target.split("/"))
            with expected_shape(f"the App's installation in {target}"):
                known = (int(raw(found)["id"]), at)
            self._installations[name] = known
        return known[0]

    def installation_changed(self, target: str) -> bool:
        """Whether another installation has the repository: it was transferred, or the App reinstalled."""
        before = self._installations.pop(checked_target(target).lower(), None)
        return before is not None and self.installation(target) != before[0]

    def find_new_installation(self, target: str, before: int) -> int | None:
        """The installation that has the repository instead of a deleted one; None for none."""
        self._installations.pop(checked_target(target).lower(), None)
        try:
            present = self.installation(target)
        except NotFoundError:
            return None
        return present if present != before else None

    def create_token(self, installation: int, scope: TokenScope, repositories: tuple[int, ...] = ()) -> str:
        """A token for a scope, cached while valid."""
        key = (installation, scope.name, repositories)
        with self._lock:
            there = self._tokens.get(key)
            if there is None or there.expires_at - REFRESH_MARGIN <= self._clock():
                there = self._tokens[key] = self._request_token(installation, scope, repositories)
            return there.value

    def discard_token(self, installation: int, value: str) -> None:
        """Discards a token that GitHub rejected; its installation may be stale, too."""
        with self._lock:
            self._tokens = {key: one for key, one in self._tokens.items() if one.value != value}
            for name, one in list(self._installations.items()):
                if one[0] == installation:
                    self._installations[name] = (installation, NEVER)

    def _request_token(self, installation: int, scope: TokenScope, repositories: tuple[int, ...]) -> _Token:
        body: dict[str, Any] = {"permissions": dict(scope.permissions)}
        if repositories:
            body["repository_ids"] = list(repositories)
        path = f"/app/installations/{installation}/access_tokens"
        try:
            made = self.app.send(Request("POST", path, body)).data
        except RefusalError:
            with expected_shape(f"installation {installation}"):
                granted = raw(self.integration().get_app_installation(installation)).get("permissions") or {}
                body["permissions"] = _granted_permissions(scope, granted)
            if body["permissions"] == scope.permissions:
                raise  # permissions were not the cause
            missing = sorted(set(scope.permissions.items()) - set(body["permissions"].items()))
            log.warning("an installation lacks permissions", installation=installation, missing=missing)
            made = self.app.send(Request("POST", path, body)).data
        with expected_shape("a token"):
            return _Token(str(made["token"]), parse_time(made["expires_at"]))

    def _repository(self, target: str, installation: int) -> int:
        """The repository's id, which a rename keeps."""
        name, at = checked_target(target).lower(), self._clock()
        known = self._repositories.get((name, installation))
        if known is None or known[1] + INSTALLATION_TTL <= at:
            api = self.client_for_installation(installation, LOCATOR).api()
            with expected_shape(target):
                known = (int(api.repository(target).complete().raw_data["id"]), at)
            self._repositories[name, installation] = known
        return known[0]


class InstallationAuthenticator:
    """Authenticates as one installation for one scope.

    target   the repository, which another installation may have by now; "" for all of this installation's
    """

    def __init__(
        self,
        identity: AppIdentity,
        installation: int,
        scope: TokenScope,
        repositories: tuple[int, ...] = (),
        target: str = "",
    ) -> None:
        self.account = str(installation)
        self._identity, self._installation = identity, installation
        self._scope, self._repositories, self._target = scope, repositories, target
        self._used = ""

    def authorization(self) -> str:
        """The header's value."""
        return f"token {self.token()}"

    def token(self) -> str:
        """The token itself; of the present installation, if the App was reinstalled."""
        try:
            self._used = self._identity.create_token(self._installation, self._scope, self._repositories)
        except NotFoundError:
            present = (
                self._identity.find_new_installation(self._target, self._installation)
                if self._target
                else None
            )
            if present is None:
                raise
            self._installation, self.account = present, str(present)
            self._used = self._identity.create_token(present, self._scope, self._repositories)
        return self._used

    def refresh(self) -> bool:
        """Discards the token, so that the next one is new."""
        self._identity.discard_token(self._installation, self._used)
        return True


def _granted_permissions(scope: TokenScope, granted: Mapping[str, str]) -> dict[str, str]:
    """A scope's permissions, limited to those granted to the installation."""
    rank = {"read": 1, "write": 2, "admin": 3}
    found = {}
    for name, wanted in scope.permissions.items():
        has = granted.get(name, "")
        if rank.get(has, 0) >= rank[wanted]:
            found[name] = wanted
        elif has:
            found[name] = has
    return found
