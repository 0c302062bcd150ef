"""The sink that reaches GitHub."""

from __future__ import annotations

from bot.errors import RefusalError
from bot.github.answers import MissingError
from bot.github.client import Client
from bot.github.effects import Kind, kind_of
from bot.github.hub import Hub
from bot.github.identity import REPORTER
from bot.github.requests import Sent
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
            client = self.hub.client(effect.target, REPORTER)
            if _belongs(effect) and "disabled" not in error.said and _is_there(client, effect.target):
                raise RefusalError(
                    f"somebody deleted this {effect.kind} or what it belongs to ({error.said}); nothing more "
                    "is said there. Release the effect to have it made anew"
                ) from error
            raise

    def _send(self, effect: Claimed) -> Sent:
        return self._kind(effect).send(self.hub.client(effect.target, REPORTER), effect)

    def find(self, effect: Claimed) -> Sent | None:
        """The effect if GitHub has it from us."""
        client = self.hub.client(effect.target, REPORTER)
        return self._kind(effect).find(client, effect, self.hub.identity.login())

    def account(self, target: str) -> str:
        """The installation, or the token's owner."""
        return self.hub.identity.account(target)

    def close(self) -> None:
        """Closes the hub."""
        self.hub.close()

    def _kind(self, effect: Claimed) -> Kind:
        kind = kind_of(effect.kind)
        return kind if kind.tokens or self.hub.is_app else kind_of(_FOR_TOKENS[effect.kind])


def _belongs(effect: Claimed) -> bool:
    """Whether it needs something that a person may have deleted: itself, an issue, a comment."""
    return bool(effect.remote or effect.number or effect.payload.get("comment"))


def _is_there(client: Client, target: str) -> bool:
    return client.maybe(f"/repos/{target}") is not None
