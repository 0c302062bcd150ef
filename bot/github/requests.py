"""Requests to GitHub's REST API, their results, and the sinks that send them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from bot.errors import InternalError
from bot.store.outbox import ClaimedEffect

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class Request:
    """One request: its method, its path below the API's root, its JSON body."""

    method: str
    path: str
    body: dict[str, Any] | None


@dataclass(frozen=True)
class Sent:
    """What GitHub made of an effect: where it is, its number if it is an issue, and its id there."""

    url: str
    number: int | None = None
    remote_id: str = ""


class Sink(Protocol):
    """Where effects go.

    live  whether people see them: what is not may be written twice, what is must not
    """

    live: bool

    def send(self, effect: ClaimedEffect) -> Sent:
        """Makes the effect, or gives it its present content where `effect.remote_id` is known.

        Raises RefusalError if trying again is no use, ThrottledError if it was not carried out, and any
        other InfrastructureError if it may have arrived.
        """

    def find(self, effect: ClaimedEffect) -> Sent | None:
        """The effect if it was made before; None if it surely was not. Raises as `send` does."""

    def account(self, target: str) -> str:
        """Whose limits an effect on `target` uses up; "" while that is not known."""


def checked_target(target: str) -> str:
    """`owner/name`, fit for paths and URLs."""
    if not _TARGET.fullmatch(target) or target.endswith(("/.", "/..")):
        raise InternalError(f"{target!r} is no owner/name of a repository")
    return target
