"""The sink that publishes on GitHub."""

from __future__ import annotations

from typing import NoReturn

from bot.errors import RefusalError
from bot.github.effects import EffectKind, kind_of
from bot.github.github_api import GitHubApi
from bot.github.identity import REPORTER, TokenScope
from bot.github.requester import exists
from bot.github.requests import Sent
from bot.github.responses import NotFoundError, RepositoryUnavailableError, expected_shape
from bot.store.models import SuppressionCause
from bot.store.outbox import ClaimedEffect

#: App-only kind → its replacement for tokens.
_FOR_TOKENS = {"check_run": "commit_status"}


class GitHubSink:
    """Publishes effects on GitHub or a GitHub Enterprise Server. Thread-safe."""

    live = True

    def __init__(self, github_api: GitHubApi) -> None:
        self.github_api = github_api

    def send(self, effect: ClaimedEffect) -> Sent:
        """Creates or updates the effect, with the same requests as in dry runs.

        Does not recreate what a person deleted.
        """
        try:
            return self._send(effect)
        except NotFoundError as error:
            if self.github_api.identity.installation_changed(effect.target):
                return self._send(effect)
            self._raise_specific(effect, error)

    def _raise_specific(self, effect: ClaimedEffect, error: NotFoundError) -> NoReturn:
        """Raises an error that names the missing part: the repository, its issues, or the parent."""
        if "disabled" in error.error_message:
            raise RepositoryUnavailableError(str(error), SuppressionCause.NO_ISSUES) from error
        if not self._repository_exists(effect.target):
            raise RepositoryUnavailableError(str(error), SuppressionCause.UNWATCHED) from error
        if _has_parent(effect):
            raise RefusalError(
                f"somebody deleted this {effect.kind} or its parent ({error.error_message}); nothing more is "
                "posted there. Approve the effect to have it made anew"
            ) from error
        raise error

    def _send(self, effect: ClaimedEffect) -> Sent:
        kind = self._kind(effect)
        if kind.branch_scope is not None:
            self._prepare(kind, kind.branch_scope, effect)
        return kind.send(self.github_api.client(effect.target, kind.scope_for(effect)), effect)

    def _prepare(self, kind: EffectKind, scope: TokenScope, effect: ClaimedEffect) -> None:
        """`EffectKind.prepare` with a token of the repository that has the branch."""
        place = kind.branch_repository(effect)
        try:
            kind.prepare(self.github_api.client(place, scope).api(kind.branch_permission), effect)
        except NotFoundError as error:
            if place == effect.target:
                raise
            raise RefusalError(
                f"{error}; install the App in {place} with {kind.branch_permission}, or name another fork of "
                f"{effect.target} in ASSAY_PROPOSAL_FORKS"
            ) from error

    def find(self, effect: ClaimedEffect) -> Sent | None:
        """The effect if we published it."""
        try:
            with expected_shape(f"the {effect.kind} in {effect.target}"):
                kind = self._kind(effect)
                client = self.github_api.client(effect.target, kind.scope_for(effect))
                return kind.find(client.api(), effect, self.github_api.identity.login())
        except NotFoundError as error:
            self._raise_specific(effect, error)

    def account(self, target: str) -> str:
        """The installation, or the account of a token."""
        return self.github_api.identity.account(target)

    def close(self) -> None:
        """Closes the API."""
        self.github_api.close()

    def _kind(self, effect: ClaimedEffect) -> EffectKind:
        kind = kind_of(effect.kind)
        return (
            kind if kind.allowed_for_tokens or self.github_api.is_app else kind_of(_FOR_TOKENS[effect.kind])
        )

    def _repository_exists(self, target: str) -> bool:
        """Whether GitHub shows us the repository."""
        try:
            return exists(self.github_api.client(target, REPORTER).api().repository(target))
        except NotFoundError:  # the App is not installed there
            return False


def _has_parent(effect: ClaimedEffect) -> bool:
    """Whether it needs an object that a person may have deleted: itself, an issue, a comment."""
    return bool(effect.remote_id or effect.number or effect.payload.get("comment"))
