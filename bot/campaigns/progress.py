"""Progress of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from bot.store.models import CampaignState

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Progress:
    """Progress of the current step.

    done, total  cases or runs; total 0 if unknown
    note         one line
    lasting      whether the note is a result, to be shown at once and kept
    """

    campaign_id: int
    state: CampaignState
    done: int
    total: int
    note: str
    lasting: bool = False


OnProgress = Callable[[Progress], None]


def log_progress(progress: Progress) -> None:
    """Logs progress; the default."""
    log.debug(
        "campaign.progressed",
        state=progress.state.value,
        done=progress.done,
        total=progress.total,
        note=progress.note,
    )
