"""Clients of the double: the App, an installation, or a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
import requests

from tests.github.double import GitHubDouble


@dataclass
class Client:
    """Requests with one Authorization header."""

    url: str
    authorization: str = ""

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """Sends one request; follows no redirects."""
        sent = dict(headers or {})
        if self.authorization:
            sent["Authorization"] = self.authorization
        return requests.request(
            method, self.url + path, json=body, headers=sent, timeout=600, allow_redirects=False
        )

    def get(self, path: str, **headers: str) -> Any:
        """A GET that must succeed; returns its body."""
        answer = self.ask("GET", path, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> Any:
        """A POST that must succeed; returns its body."""
        answer = self.ask("POST", path, body)
        assert answer.status_code in (200, 201, 202), answer.text
        return answer.json()

    def patch(self, path: str, body: Any) -> Any:
        """A PATCH that must succeed; returns its body."""
        answer = self.ask("PATCH", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def claims(hub: GitHubDouble, **changed: Any) -> dict[str, Any]:
    """The claims of a valid JWT of the App."""
    at = hub.hub.world.clock()
    usual = {"iat": at - timedelta(seconds=60), "exp": at + timedelta(minutes=9), "iss": hub.app_id}
    return usual | changed


def as_app(hub: GitHubDouble, **changed: Any) -> Client:
    """A client with the App's JWT."""
    signed = jwt.encode(claims(hub, **changed), hub.private_key, algorithm="RS256")
    return Client(hub.url, f"Bearer {signed}")


def as_installation(hub: GitHubDouble, login: str, **body: Any) -> Client:
    """A client with a new token of an account's installation."""
    number = hub.installation(login).id
    token = as_app(hub).post(f"/app/installations/{number}/access_tokens", body or None)["token"]
    return Client(hub.url, f"Bearer {token}")


def as_person(hub: GitHubDouble, login: str) -> Client:
    """A client with a personal token."""
    return Client(hub.url, f"token {hub.token(login)}")
