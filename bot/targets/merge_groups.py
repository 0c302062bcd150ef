"""Merge queues: tests the merged commit if `pull_requests.gate` makes our check decide."""

from __future__ import annotations

from collections.abc import Callable

from bot.store import Session, targets
from bot.webhooks.intents import CampaignIntent, Ignored, MergeGroupIntent

TRIGGER = "merge_group"

Start = Callable[[Session, CampaignIntent], object]


def handle(session: Session, intent: MergeGroupIntent, start: Start) -> object:
    """Starts a campaign for the group if `pull_requests.gate` is set or the configuration is not read yet.

    Without the gate, nothing waits for the check, and the pull requests were tested before.
    """
    target = targets.find(session, intent.target)
    policy = target.policy if target is not None else {}
    if policy and not policy.get("gate"):
        return Ignored(f"pull_requests.gate is off in .github/assay.yml of {intent.target}")
    campaign = CampaignIntent(
        target=intent.target,
        github_id=intent.github_id,
        installation=intent.installation,
        delivery=intent.delivery,
        head=intent.head,
        base=intent.base,
        ref=intent.ref,
        trigger=TRIGGER,
    )
    return start(session, campaign)
