"""Merge queues: what would be merged is tested where the repository lets our check decide."""

from __future__ import annotations

from collections.abc import Callable

from bot.store import Session, targets
from bot.webhooks.intents import CampaignIntent, Ignored, MergeGroupIntent

TRIGGER = "merge_group"

Start = Callable[[Session, CampaignIntent], object]


def handle(session: Session, intent: MergeGroupIntent, start: Start) -> object:
    """A campaign for the group beside its base, where `pull_requests.gate` is set.

    Without it nobody waits for us: what is merged was tested as a pull request. While nobody has read the
    configuration yet the group is tested, as a queue that waits in vain is worse than a campaign too many.
    """
    target = targets.find(session, intent.target)
    policy = target.policy if target is not None else {}
    if policy and not policy.get("gate"):
        return Ignored(f"{intent.target} does not gate; pull_requests.gate in .github/assay.yml would")
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
