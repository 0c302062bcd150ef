"""Requests to GitHub's REST API, their results, and the interface of sinks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from bot.errors import InternalError
from bot.store.outbox import ClaimedEffect

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class Request:
    """One request: method, path below the API's root, JSON body."""

    method: str
    path: str
    body: dict[str, Any] | None


@dataclass(frozen=True)
class Sent:
    """A published effect: its URL, its number if it is an issue, and its id."""

    url: str
    number: int | None = None
    remote_id: str = ""


class Sink(Protocol):
    """Where effects are sent.

    live  whether it publishes: live effects must not be sent twice
    """

    live: bool

    def send(self, effect: ClaimedEffect) -> Sent:
        """Creates the effect, or updates it if `effect.remote_id` is set.

        Raises RefusalError if a retry is useless, ThrottledError if it was not executed, and any other
        InfrastructureError if it may have arrived.
        """

    def find(self, effect: ClaimedEffect) -> Sent | None:
        """The effect if it exists; None if it certainly does not. Raises as `send` does."""

    def account(self, target: str) -> str:
        """The account whose limits an effect on `target` uses; "" if unknown."""


def checked_target(target: str) -> str:
    """`owner/name`, validated for use in paths and URLs."""
    if not _TARGET.fullmatch(target) or target.endswith(("/.", "/..")):
        raise InternalError(f"{target!r} is no owner/name of a repository")
    return target
