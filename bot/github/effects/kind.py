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
from bot.store.outbox import Claimed

#: What is this much older than the effect cannot be its own: clocks differ by less.
CLOCK_SKEW = timedelta(minutes=10)


class Kind:
    """One kind of effect on GitHub.

    name     as in the outbox
    need     the permission it takes, as GitHub writes it
    living   whether it is changed in place
    seeks    whether it is looked for even when it is new to the outbox
    tokens   whether the owner of a token may make it, not only an App
    """

    name: ClassVar[str]
    need: ClassVar[str]
    living: ClassVar[bool] = False
    seeks: ClassVar[bool] = False
    tokens: ClassVar[bool] = True

    def create(self, effect: Claimed) -> Request:
        """The request that makes it."""
        raise NotImplementedError

    def change(self, effect: Claimed) -> Request:
        """The request that gives `effect.remote` its present content; of living kinds only."""
        raise InternalError(f"{effect.kind} {effect.key} is of a kind that is never changed")

    def requests(self, effect: Claimed) -> list[Request]:
        """Everything that is asked of GitHub where nothing goes wrong."""
        return [self.change(effect) if effect.remote else self.create(effect)]

    def sent(self, answer: Any) -> Sent:
        """What GitHub's answer tells of it."""
        return Sent(str(answer.get("html_url") or answer.get("url") or ""), remote=str(answer["id"]))

    def send(self, client: Client, effect: Claimed) -> Sent:
        """Makes it, or gives it its present content."""
        request = self.change(effect) if effect.remote else self.create(effect)
        return self.sent(client.send(request, self.need).data)

    def find(self, client: Client, effect: Claimed, me: str) -> Sent | None:
        """What is there already; None also where making it twice is making it once."""
        del client, effect, me
        return None

    def settled(self, effect: Claimed) -> bool:
        """Whether what was found of an effect left half-way is surely all of it, as it is to be now."""
        del effect
        return not self.living


K = TypeVar("K", bound=type[Kind])
_KINDS: dict[str, Kind] = {}


def kind(made: K) -> K:
    """Decorator: registers a kind under its name."""
    if made.name in _KINDS:
        raise InternalError(f"two kinds of effects are called {made.name!r}")
    _KINDS[made.name] = made()
    return made


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    if name not in _KINDS:
        raise InternalError(f"no request makes an effect of kind {name!r}")
    return _KINDS[name]


def kinds() -> tuple[Kind, ...]:
    """Every kind, by name."""
    return tuple(_KINDS[name] for name in sorted(_KINDS))


def thread(effect: Claimed) -> str:
    """The path of the issue or pull request an effect belongs to."""
    if effect.number is None:
        raise InternalError(f"{effect.kind} {effect.key} belongs to no issue or pull request")
    return f"/repos/{checked_target(effect.target)}/issues/{effect.number}"


def in_public(effect: Claimed) -> None:
    """Raises RefusalError: what the effect belongs to was written down only, so there is no place for it."""
    if effect.number == 0:
        raise RefusalError(
            f"the issue that this {effect.kind} belongs to was written down in dry-run, not sent; release "
            "that one first"
        )


def ours(items: Iterable[Any], effect: Claimed, me: str) -> Any | None:
    """The first text that is ours and carries the marker: anybody may quote it, so the author counts too."""
    mark = marker(effect.key)
    for one in items:
        author = (one.get("user") or {}).get("login")
        if author == me and mark in (one.get("body") or ""):
            return one
    return None


def without(payload: dict[str, Any], *names: str) -> dict[str, Any]:
    """The payload less some of its fields."""
    return {name: value for name, value in payload.items() if name not in names}


def since(effect: Claimed) -> str:
    """No text of the effect is older, as GitHub writes times."""
    return (effect.created_at - CLOCK_SKEW).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_made(effect: Claimed, sent: Sent) -> Claimed:
    """The effect, once GitHub has given it an id."""
    return replace(effect, remote=sent.remote)
