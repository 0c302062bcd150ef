"""Cleanup of a database that is kept between single runs for its verdicts."""

from __future__ import annotations

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from bot.store.models import Bug, Campaign, CampaignCase, CampaignState, Effect, Finding, Repeat

_ENDED = tuple(state.value for state in CampaignState if state.ended)
_KEY_FIELDS = ("toolchain", "backend", "device", "configuration")


def prune(session: Session) -> None:
    """Deletes everything but outcomes and the newest repeats; ends campaigns whose process died.

    Each campaign copies repeats from the one before, so the newest suffice. Campaigns stay if repeats or the
    target of a toolchain refer to them.
    """
    unfinished = Campaign.state.not_in(_ENDED)
    session.execute(
        update(Campaign)
        .where(unfinished)
        .values(state=CampaignState.SUPERSEDED.value, reason="its process ended before it", owner="")
    )
    for table in (CampaignCase, Finding, Effect, Bug):
        session.execute(delete(table))
    newer = aliased(Repeat)
    same = [
        newer.body[name].as_string().is_not_distinct_from(Repeat.body[name].as_string())
        for name in _KEY_FIELDS
    ]
    later = (newer.campaign_id > Repeat.campaign_id, newer.case_id == Repeat.case_id)
    session.execute(delete(Repeat).where(exists().where(*later, newer.number == Repeat.number, *same)))
    newest = (
        select(func.max(Campaign.id)).where(toolchain.is_not(None)).group_by(Campaign.target, toolchain)
        for toolchain in (Campaign.head_toolchain, Campaign.base_toolchain)
    )
    session.execute(
        delete(Campaign).where(
            Campaign.id.not_in(select(Repeat.campaign_id)), *(Campaign.id.not_in(query) for query in newest)
        )
    )
