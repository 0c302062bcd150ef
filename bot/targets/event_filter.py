"""Filters events: is the repository watched, what is its name, is the event stale?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.store import Session, now, targets
from bot.store.models import Target, TargetState
from bot.targets import branch_heads, target_lifecycle
from bot.targets.branch_heads import PushOrder
from bot.webhooks.inbox_queue import Handler
from bot.webhooks.intents import (
    CampaignIntent,
    CheckIntent,
    Ignored,
    InstallationIntent,
    Intent,
    RepositoryIntent,
)


@dataclass(frozen=True)
class EventFilter:
    """Passes intents of watched repositories to `handle`, under the name that our rows use.

    app             the App's id or client id, "" for none: check runs of other Apps are ignored
    forks           forks for proposed tests, in lower case: the App is there to push, not to test
    can_ask_github  whether GitHub can order two pushes; else the last to arrive is the later one
    """

    handle: Handler
    app: str = ""
    forks: frozenset[str] = frozenset()
    can_ask_github: bool = True
    clock: Callable[[], datetime] = now

    def __call__(self, session: Session, intent: Intent) -> object:
        """The handler's result, or why the intent is ignored."""
        if isinstance(intent, (InstallationIntent, RepositoryIntent)):
            return self.handle(session, intent)
        if intent.target.lower() in self.forks:
            return Ignored(f"{intent.target} is a fork for proposed tests")
        at = self.clock()
        target = target_lifecycle.get_or_create(session, intent.target, intent.github_id, at)
        target.last_event_at = at
        _update_installation(session, target, intent.installation, at)
        why = targets.unwatched_reason(session, target.name) or self._find_foreign_app(intent)
        if not why and isinstance(intent, CampaignIntent):
            why = self._find_stale_push(session, target, intent, at)
        if why:
            return Ignored(why)
        return self.handle(session, replace(intent, target=target.name))

    def _find_foreign_app(self, intent: Intent) -> str:
        """Why a check run is another App's; "" if it is ours or unknown."""
        if not isinstance(intent, CheckIntent) or not self.app:
            return ""
        same_kind = [name for name in intent.app if name.isdigit() == self.app.isdigit()]
        if same_kind and self.app not in same_kind:
            return f"the check run is another App's ({', '.join(intent.app)})"
        return ""

    def _find_stale_push(self, session: Session, target: Target, intent: CampaignIntent, at: datetime) -> str:
        """Why a push is not tested; "" if it is, and then its head is stored."""
        if intent.trigger != "push" or not intent.ref.startswith(branch_heads.BRANCH_PREFIX):
            return ""
        position = branch_heads.classify_push(target, intent)
        if position is PushOrder.STALE:
            return f"{intent.ref} has moved on since this push"
        if position is PushOrder.AMBIGUOUS and self.can_ask_github:
            target_lifecycle.request_sync(target)
            return f"two pushes to {intent.ref} have the same time; GitHub is read for the later one"
        if position is PushOrder.CURRENT and targets.is_tested(session, target.name, intent.ref, intent.head):
            return f"{intent.head[:12]} is already the known head of {intent.ref}"
        branch_heads.record_head(
            target, intent.ref.removeprefix(branch_heads.BRANCH_PREFIX), intent.head, intent.at or at
        )
        return ""


def _update_installation(session: Session, target: Target, installation: int | None, at: datetime) -> None:
    """Assigns the target to the installation that a signed event names."""
    if installation is None or target.installation_id == installation:
        return
    owner = target.name.partition("/")[0]
    row, _ = targets.ensure_installation(session, installation, owner, targets.LONG_AGO)
    target_lifecycle.request_installation_sync(session, row)
    if row.state == TargetState.REMOVED.value:
        return
    target.installation_id = installation
    if target.state == TargetState.REMOVED.value:
        target_lifecycle.start_watching(session, target, "the GitHub App is installed there again", at)
