"""Base class and registry of effect kinds: what creates, updates and finds an effect.

A dry run records the requests of the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from github.GithubObject import GithubObject
from github.Issue import Issue

from bot.errors import InternalError, RefusalError
from bot.github.client import Client
from bot.github.identity import REPORTER, TokenScope
from bot.github.limits import marker
from bot.github.requester import ApiRequester, raw
from bot.github.requests import Sent
from bot.github.responses import expected_shape
from bot.store.outbox import ClaimedEffect

#: Anything this much older than the effect is not its own: clocks differ by less.
CLOCK_SKEW = timedelta(minutes=10)


class EffectKind:
    """One kind of effect on GitHub.

    name     as in the outbox
    scope    of the token that it is sent with
    branch_scope  of the token of `prepare`; None for kinds without a branch
    branch_permission  the permission that `prepare` needs
    permission  the permission it needs, as GitHub writes it
    editable   whether it is updated in place
    always_search  whether it is searched for even if it is new to the outbox
    allowed_for_tokens  whether tokens may create it, not only Apps
    needs_parent    whether it belongs to an effect that may have been written in a dry run only
    shown    index of the request that shows what people would read
    """

    name: ClassVar[str]
    scope: ClassVar[TokenScope] = REPORTER
    branch_scope: ClassVar[TokenScope | None] = None
    branch_permission: ClassVar[str] = ""
    permission: ClassVar[str]
    editable: ClassVar[bool] = False
    always_search: ClassVar[bool] = False
    allowed_for_tokens: ClassVar[bool] = True
    needs_parent: ClassVar[bool] = False
    shown: ClassVar[int] = 0

    def scope_for(self, effect: ClaimedEffect) -> TokenScope:
        """The scope of the token that publishes this effect."""
        del effect
        return self.scope

    def branch_repository(self, effect: ClaimedEffect) -> str:
        """The repository where `prepare` works."""
        return effect.target

    def prepare(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Does what `publish` builds on; may be repeated."""
        del api, effect

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates the effect, or updates `effect.remote_id`; the last response is about it."""
        raise NotImplementedError

    def sent(self, answer: Any) -> Sent:
        """Parses GitHub's response."""
        return Sent(str(answer.get("html_url") or answer.get("url") or ""), remote_id=str(answer["id"]))

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """`publish`; raises RefusalError if the parent was only written in dry-run mode."""
        if self.needs_parent:
            require_parent_sent(effect)
        api = client.api(self.permission)
        self.publish(api, effect)
        return self.read_sent(api.answer)

    def read_sent(self, answer: Any) -> Sent:
        """`sent`; raises UnexpectedResponseError if the response lacks required fields."""
        with expected_shape(f"the {self.name} it made"):
            return self.sent(answer)

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """The effect if it exists; always None for kinds that are idempotent."""
        del api, effect, login
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


def thread_of(api: ApiRequester, effect: ClaimedEffect) -> Issue:
    """The issue or pull request an effect belongs to, not read yet."""
    if effect.number is None:
        raise InternalError(f"{effect.kind} {effect.key} belongs to no issue or pull request")
    return api.repository(effect.target).get_issue(effect.number)


def require_parent_sent(effect: ClaimedEffect) -> None:
    """Raises RefusalError if the parent was only written in dry-run mode."""
    if effect.number == 0:
        raise RefusalError(
            f"the issue that this {effect.kind} belongs to was written down in dry-run, not sent; release "
            "that one first"
        )


def find_own(items: Iterable[GithubObject], effect: ClaimedEffect, login: str) -> Any | None:
    """The JSON of our first item with the marker; checks the author, since anybody may quote the marker."""
    mark = marker(effect.key)
    for one in map(raw, items):
        author = (one.get("user") or {}).get("login")
        if author == login and mark in (one.get("body") or ""):
            return one
    return None


def since(effect: ClaimedEffect) -> datetime:
    """A time before which no text of the effect was created."""
    return effect.created_at - CLOCK_SKEW
