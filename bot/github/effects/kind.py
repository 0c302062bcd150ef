"""Base class and registry of effect kinds: the requests that create, update and find an effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from bot.errors import InternalError, RefusalError
from bot.github.client import Client
from bot.github.identity import REPORTER, TokenScope
from bot.github.limits import marker
from bot.github.requests import Request, Sent, checked_target
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect

#: Anything this much older than the effect is not its own: clocks differ by less.
CLOCK_SKEW = timedelta(minutes=10)


class EffectKind:
    """One kind of effect on GitHub.

    name     as in the outbox
    scope    of the token that it is sent with
    permission  the permission it needs, as GitHub writes it
    editable   whether it is updated in place
    always_search  whether it is searched for even if it is new to the outbox
    allowed_for_tokens  whether tokens may create it, not only Apps
    """

    name: ClassVar[str]
    scope: ClassVar[TokenScope] = REPORTER
    permission: ClassVar[str]
    editable: ClassVar[bool] = False
    always_search: ClassVar[bool] = False
    allowed_for_tokens: ClassVar[bool] = True

    def create(self, effect: ClaimedEffect) -> Request:
        """The request that creates the effect."""
        raise NotImplementedError

    def change(self, effect: ClaimedEffect) -> Request:
        """The request that updates `effect.remote_id`; for editable kinds only."""
        raise InternalError(f"{effect.kind} {effect.key} is of a kind that is never changed")

    def requests(self, effect: ClaimedEffect) -> list[Request]:
        """All requests of a successful run, in order."""
        return [self.change(effect) if effect.remote_id else self.create(effect)]

    def sent(self, answer: Any) -> Sent:
        """Parses GitHub's response."""
        return Sent(str(answer.get("html_url") or answer.get("url") or ""), remote_id=str(answer["id"]))

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Creates or updates the effect."""
        request = self.change(effect) if effect.remote_id else self.create(effect)
        return self.read_sent(client.send(request, self.permission).data)

    def read_sent(self, answer: Any) -> Sent:
        """`sent`; raises UnexpectedResponseError if the response lacks required fields."""
        with expected_shape(f"the {self.name} it made"):
            return self.sent(answer)

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """The effect if it exists; always None for kinds that are idempotent."""
        del client, effect, login
        return None

    def is_complete(self, effect: ClaimedEffect) -> bool:
        """Whether an effect found after an interruption is certainly complete and current."""
        del effect
        return not self.editable


K = TypeVar("K", bound=type[EffectKind])
_KINDS: dict[str, EffectKind] = {}


def kind(made: K) -> K:
    """Decorator: registers a kind under its name."""
    if made.name in _KINDS:
        raise InternalError(f"two kinds of effects are called {made.name!r}")
    _KINDS[made.name] = made()
    return made


def kind_of(name: str) -> EffectKind:
    """The kind of this name."""
    if name not in _KINDS:
        raise InternalError(f"no request makes an effect of kind {name!r}")
    return _KINDS[name]


def kinds() -> tuple[EffectKind, ...]:
    """All kinds, by name."""
    return tuple(_KINDS[name] for name in sorted(_KINDS))


def thread_path(effect: ClaimedEffect) -> str:
    """The path of the issue or pull request an effect belongs to."""
    if effect.number is None:
        raise InternalError(f"{effect.kind} {effect.key} belongs to no issue or pull request")
    return f"/repos/{checked_target(effect.target)}/issues/{effect.number}"


def require_parent_sent(effect: ClaimedEffect) -> None:
    """Raises RefusalError if the parent was only written in dry-run mode."""
    if effect.number == 0:
        raise RefusalError(
            f"the issue that this {effect.kind} belongs to was written down in dry-run, not sent; release "
            "that one first"
        )


def find_own(items: Iterable[Any], effect: ClaimedEffect, login: str) -> Any | None:
    """The first item of ours with the marker; the author is checked, since anybody may quote the marker."""
    mark = marker(effect.key)
    for one in items:
        author = (one.get("user") or {}).get("login")
        if author == login and mark in (one.get("body") or ""):
            return one
    return None


def omit(payload: dict[str, Any], *names: str) -> dict[str, Any]:
    """The payload without some fields."""
    return {name: value for name, value in payload.items() if name not in names}


def since(effect: ClaimedEffect) -> str:
    """A time before which no text of the effect was created, in GitHub's format."""
    return (effect.created_at - CLOCK_SKEW).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_remote_id(effect: ClaimedEffect, sent: Sent) -> ClaimedEffect:
    """The effect with the id that GitHub assigned."""
    return replace(effect, remote_id=sent.remote_id)
