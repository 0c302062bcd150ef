"""The head of each branch, from pushes that arrive late, twice or out of order.

heads[branch] = {"commit": SHA, "at": when GitHub had it there}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from bot.store.models import Target
from bot.webhooks.intents import CampaignIntent

BRANCH_PREFIX = "refs/heads/"
#: Unwatched branches whose head is stored: those with the latest pushes.
MAX_UNWATCHED = 100


class PushOrder(Enum):
    """The order of a push relative to the known head."""

    NEXT = "next"  # the new head
    CURRENT = "known"  # the known head
    STALE = "past"  # older than the known head
    AMBIGUOUS = "unclear"  # only GitHub knows


def classify(known: Mapping[str, Any] | None, head: str, base: str, at: datetime | None) -> PushOrder:
    """The order of a push from `base` to `head`; GitHub gives its time in whole seconds."""
    if known is None:
        return PushOrder.NEXT
    if known["commit"] == head:
        return PushOrder.CURRENT
    if at is None or known["commit"] == base:
        return PushOrder.NEXT
    then = datetime.fromisoformat(known["at"])
    if at == then:
        return PushOrder.AMBIGUOUS
    return PushOrder.NEXT if at > then else PushOrder.STALE


def classify_push(target: Target, intent: CampaignIntent) -> PushOrder:
    """The order of a push relative to the known head of its branch."""
    known = target.heads.get(intent.ref.removeprefix(BRANCH_PREFIX))
    return classify(known, intent.head, intent.base, intent.at)


def record_head(target: Target, branch: str, commit: str, at: datetime) -> None:
    """Stores the head of a branch."""
    heads = dict(target.heads)
    before = heads.pop(branch, None)
    if before is not None and before["commit"] == commit:
        at = max(at, datetime.fromisoformat(before["at"]))
    heads[branch] = {"commit": commit, "at": at.isoformat()}
    others = [name for name in heads if not is_watched(target, name)]
    others.sort(key=lambda name: str(heads[name]["at"]))
    for name in others[: max(0, len(others) - MAX_UNWATCHED)]:
        del heads[name]
    target.heads = heads


def is_watched(target: Target, branch: str) -> bool:
    """Whether pushes to the branch are tested, by the known configuration."""
    globs = target.policy.get("branches")
    if globs is None:
        return branch == target.default_branch
    return any(fnmatchcase(branch, glob) for glob in globs)


def list_watched(target: Target) -> list[str]:
    """The watched branches: known ones that match a pattern, and those that a pattern names in full."""
    globs = target.policy.get("branches")
    if globs is None:
        return [target.default_branch] if target.default_branch else []
    plain = {glob for glob in globs if not any(sign in glob for sign in "*?[")}
    return sorted(plain | {branch for branch in target.heads if is_watched(target, branch)})
