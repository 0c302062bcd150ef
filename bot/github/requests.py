"""Effects as requests of GitHub's REST API: the one place that knows which kind goes where.

Both sinks use it, so that what dry-run writes down is what live would send.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from bot.errors import InternalError
from bot.store.outbox import Claimed

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")

#: Effect kind → path; every kind is created by POST.
_PATHS = {
    "issue": "/repos/{target}/issues",
    "check_run": "/repos/{target}/check-runs",
}


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
    remote: str = ""


class Sink(Protocol):
    """Where effects go.

    live  whether people see them: what is not may be written twice, what is must not
    """

    live: bool

    def send(self, effect: Claimed) -> Sent:
        """Makes the effect. Raises RefusalError if trying again is no use, ThrottledError if nothing
        arrived, and any other InfrastructureError if nobody knows whether it arrived.
        """

    def find(self, effect: Claimed) -> Sent | None:
        """The effect if it was made before; None if it surely was not. Raises as `send` does."""


def request_for(effect: Claimed) -> Request:
    """The request that makes `effect`."""
    path = _PATHS.get(effect.kind)
    if path is None:
        raise InternalError(f"no request makes an effect of kind {effect.kind!r}")
    return Request("POST", path.format(target=checked_target(effect.target)), effect.payload)


def checked_target(target: str) -> str:
    """`owner/name`, fit for paths and URLs."""
    if not _TARGET.fullmatch(target) or target.endswith(("/.", "/..")):
        raise InternalError(f"{target!r} is no owner/name of a repository")
    return target
