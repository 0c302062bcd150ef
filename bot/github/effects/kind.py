"""What a kind of effect is: the requests that make and change it, and how it is found again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from bot.errors import InternalError, RefusalError
from bot.github.client import Client
from bot.github.limits import marker
from bot.github.requests import Request, Sent, checked_target
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect

#: What is this much older than the effect cannot be its own: clocks differ by less.
CLOCK_SKEW = timedelta(minutes=10)


class EffectKind:
    """One kind of effect on GitHub.

    name     as in the outbox
    permission  the permission it takes, as GitHub writes it
    editable   whether it is changed in place
    always_search  whether it is looked for even when it is new to the outbox
    allowed_for_tokens  whether the owner of a token may make it, not only an App
    """

    name: ClassVar[str]
    permission: ClassVar[str]
    editable: ClassVar[bool] = False
    always_search: ClassVar[bool] = False
    allowed_for_tokens: ClassVar[bool] = True

    def create(self, effect: ClaimedEffect) -> Request:
        """The request that makes it."""
        raise NotImplementedError

    def change(self, effect: ClaimedEffect) -> Request:
        """The request that gives `effect.remote_id` its present content; of editable kinds only."""
        raise InternalError(f"{effect.kind} {effect.key} is of a kind that is never changed")

    def requests(self, effect: ClaimedEffect) -> list[Request]:
        """All requests of a successful run, in order."""
        return [self.change(effect) if effect.remote_id else self.create(effect)]

    def sent(self, answer: Any) -> Sent:
        """The effect as GitHub's answer describes it."""
        return Sent(str(answer.get("html_url") or answer.get("url") or ""), remote_id=str(answer["id"]))

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Makes it, or gives it its present content."""
        request = self.change(effect) if effect.remote_id else self.create(effect)
        return self.read_sent(client.send(request, self.permission).data)

    def read_sent(self, answer: Any) -> Sent:
        """`sent`; raises UnexpectedResponseError where GitHub's answer lacks what it reads."""
        with expected_shape(f"the {self.name} it made"):
            return self.sent(answer)

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """What is there already; None also where making it twice is making it once."""
        del client, effect, login
        return None

    def is_complete(self, effect: ClaimedEffect) -> bool:
        """Whether what was found of an effect left half-way is surely all of it, as it is to be now."""
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
    """The kind of that name."""
    if name not in _KINDS:
        raise InternalError(f"no request makes an effect of kind {name!r}")
    return _KINDS[name]


def kinds() -> tuple[EffectKind, ...]:
    """Every kind, by name."""
    return tuple(_KINDS[name] for name in sorted(_KINDS))


def thread_path(effect: ClaimedEffect) -> str:
    """The path of the issue or pull request an effect belongs to."""
    if effect.number is None:
        raise InternalError(f"{effect.kind} {effect.key} belongs to no issue or pull request")
    return f"/repos/{checked_target(effect.target)}/issues/{effect.number}"


def require_parent_sent(effect: ClaimedEffect) -> None:
    """Raises RefusalError: what the effect belongs to was written down only, so there is no place for it."""
    if effect.number == 0:
        raise RefusalError(
            f"the issue that this {effect.kind} belongs to was written down in dry-run, not sent; release "
            "that one first"
        )


def find_own(items: Iterable[Any], effect: ClaimedEffect, login: str) -> Any | None:
    """The first text that is ours and carries the marker: anybody may quote it, so the author counts too."""
    mark = marker(effect.key)
    for one in items:
        author = (one.get("user") or {}).get("login")
        if author == login and mark in (one.get("body") or ""):
            return one
    return None


def omit(payload: dict[str, Any], *names: str) -> dict[str, Any]:
    """The payload less some of its fields."""
    return {name: value for name, value in payload.items() if name not in names}


def since(effect: ClaimedEffect) -> str:
    """No text of the effect is older, as GitHub writes times."""
    return (effect.created_at - CLOCK_SKEW).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_remote_id(effect: ClaimedEffect, sent: Sent) -> ClaimedEffect:
    """The effect, once GitHub has given it an id."""
    return replace(effect, remote_id=sent.remote_id)
