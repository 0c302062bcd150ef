"""Authentication: the App's key and JWTs, installation tokens that expire, personal tokens."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github.calls import Actor, RefusedError
from tests.github.state import Account, GitHubState, Installation

SLUG, APP_ID, CLIENT_ID = "assay-test", 99, "Iv23liAssayTest"
#: "Generating a JSON Web Token (JWT) for a GitHub App": at most ten minutes ahead.
LONGEST_JWT_S = 600
#: "Generating an installation access token": it expires after an hour.
TOKEN_LIFE = timedelta(hours=1)
#: "Registering a GitHub App from a manifest": the three steps must be completed within an hour.
CODE_LIFE = timedelta(hours=1)


@cache
def key_pair() -> rsa.RSAPrivateKey:
    """The App's key; one for all tests of a process, since generating one is slow."""
    return rsa.generate_private_key(65537, 2048)


@cache
def private_key() -> str:
    """The App's private key as PEM."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key_pair().private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@dataclass
class Token:
    """An installation's token; `permissions` and `repositories` may be fewer than the installation's."""

    installation: Installation
    permissions: dict[str, str]
    repositories: frozenset[int] | None
    expires_at: datetime


@dataclass
class Identity:
    """Credentials that an Authorization header may have.

    codes   manifest code → expiry
    """

    world: GitHubState
    tokens: dict[str, Token] = field(default_factory=dict)
    people: dict[str, Account] = field(default_factory=dict)
    codes: dict[str, datetime] = field(default_factory=dict)

    @property
    def bot(self) -> Account:
        """The account of the App."""
        return self.world.account(f"{SLUG}[bot]")

    def personal(self, login: str) -> str:
        """A personal token."""
        token = f"ghp_{login}"
        self.people[token] = self.world.account(login)
        return token

    def manifest_code(self) -> str:
        """The one-time code of an App registered from a manifest, valid for an hour."""
        code = secrets.token_hex(20)
        self.codes[code] = self.world.clock() + CODE_LIFE
        return code

    def mint(
        self, installation: Installation, permissions: dict[str, str], repositories: frozenset[int] | None
    ) -> tuple[str, Token]:
        """A new token of an installation."""
        expires = self.world.clock() + TOKEN_LIFE
        text = f"ghs_{secrets.token_hex(18)}"
        self.tokens[text] = Token(installation, permissions, repositories, expires)
        return text, self.tokens[text]

    def actor(self, header: str) -> Actor:
        """The caller of this Authorization header. Raises RefusedError 401 or 403."""
        kind, _, text = header.partition(" ")
        if not header:
            return Actor("nobody")
        if kind.lower() not in ("bearer", "token"):
            raise _bad_credentials()
        if text.count(".") == 2:
            return self._app(text)
        if text in self.people:
            return Actor("user", self.people[text])
        return self._installation(text)

    def _app(self, text: str) -> Actor:
        try:
            reported: dict[str, Any] = jwt.decode(
                text,
                key_pair().public_key(),
                algorithms=["RS256"],
                options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iat", "iss"]},
            )
        except jwt.PyJWTError:
            raise RefusedError(401, "A JSON web token could not be decoded") from None
        at = self.world.clock().timestamp()
        if str(reported["iss"]) not in (str(APP_ID), CLIENT_ID):
            raise RefusedError(401, "Integration not found")
        if reported["exp"] <= at:
            raise RefusedError(401, "'Expiration time' claim ('exp') must be a numeric value in the future")
        if reported["exp"] > at + LONGEST_JWT_S:
            raise RefusedError(401, "'Expiration time' claim ('exp') is too far in the future")
        if reported["iat"] > at + 1:
            raise RefusedError(401, "'Issued at' claim ('iat') must be an Integer in the past")
        return Actor("app")

    def _installation(self, text: str) -> Actor:
        token = self.tokens.get(text)
        if token is None or token.expires_at <= self.world.clock() or token.installation.deleted:
            raise _bad_credentials()
        installation = token.installation
        if installation.suspended_at is not None:
            raise RefusedError(403, "This installation has been suspended")
        reached = frozenset(installation.repositories)
        if token.repositories is not None:
            reached &= token.repositories
        return Actor("installation", self.bot, installation, token.permissions, reached)


def _bad_credentials() -> RefusedError:
    return RefusedError(401, "Bad credentials")
