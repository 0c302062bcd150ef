"""The sink that reaches GitHub."""

from __future__ import annotations

from typing import NoReturn

from bot.errors import RefusalError
from bot.github.answers import MissingError, ShutError
from bot.github.effects import Kind, kind_of
from bot.github.hub import Hub
from bot.github.identity import REPORTER
from bot.github.requests import Sent
from bot.store.models import Cause
from bot.store.outbox import Claimed

#: What stands in for a kind that only Apps may make, where a token is used.
_FOR_TOKENS = {"check_run": "commit_status"}


class GitHub:
    """Makes effects on GitHub or a GitHub Enterprise Server. For any number of threads."""

    live = True

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    def send(self, effect: Claimed) -> Sent:
        """Makes or changes the effect, with the requests that dry-run writes down.

        Nothing is made anew that a person deleted.
        """
        try:
            return self._send(effect)
        except MissingError as error:
            if self.hub.identity.moved(effect.target):
                return self._send(effect)
            self._raise(effect, error)

    def _raise(self, effect: Claimed, error: MissingError) -> NoReturn:
        """Says what is missing: the repository, its issues, or what the effect belongs to."""
        if "disabled" in error.said:
            raise ShutError(str(error), Cause.NO_ISSUES) from error
        if not self._is_there(effect.target):
            raise ShutError(str(error), Cause.UNWATCHED) from error
        if _belongs(effect):
            raise RefusalError(
                f"somebody deleted this {effect.kind} or what it belongs to ({error.said}); nothing more "
                "is said there. Release the effect to have it made anew"
            ) from error
        raise error

    def _send(self, effect: Claimed) -> Sent:
        return self._kind(effect).send(self.hub.client(effect.target, REPORTER), effect)

    def find(self, effect: Claimed) -> Sent | None:
        """The effect if GitHub has it from us."""
        try:
            client = self.hub.client(effect.target, REPORTER)
            return self._kind(effect).find(client, effect, self.hub.identity.login())
        except MissingError as error:
            self._raise(effect, error)

    def account(self, target: str) -> str:
        """The installation, or the token's owner."""
        return self.hub.identity.account(target)

    def close(self) -> None:
        """Closes the hub."""
        self.hub.close()

    def _kind(self, effect: Claimed) -> Kind:
        kind = kind_of(effect.kind)
        return kind if kind.tokens or self.hub.is_app else kind_of(_FOR_TOKENS[effect.kind])

    def _is_there(self, target: str) -> bool:
        """Whether GitHub lets us see the repository."""
        try:
            return self.hub.client(target, REPORTER).maybe(f"/repos/{target}") is not None
        except MissingError:  # the App is not installed there
            return False


def _belongs(effect: Claimed) -> bool:
    """Whether it needs something that a person may have deleted: itself, an issue, a comment."""
    return bool(effect.remote or effect.number or effect.payload.get("comment"))
