"""Progress: what a campaign tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from bot.store.models import CampaignState

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Progress:
    """How far the present step of a campaign is.

    done, total  in the step's own unit, cases or runs; total is 0 where it is not known
    note         one line for people
    """

    campaign_id: int
    state: CampaignState
    done: int
    total: int
    note: str


OnProgress = Callable[[Progress], None]


def log_progress(progress: Progress) -> None:
    """Logs it; the default for whoever has no better place to show it."""
    log.debug(
        "campaign.progressed",
        state=progress.state.value,
        done=progress.done,
        total=progress.total,
        note=progress.note,
    )
