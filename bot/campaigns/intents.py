"""Intents become campaigns, in the transaction of the delivery."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

import structlog

from bot.store import campaigns, now
from bot.store.campaigns import Session
from bot.store.models import Campaign, CampaignState

log = structlog.get_logger(__name__)


class CampaignIntent(Protocol):
    """What an event asks for (`bot.webhooks` makes these)."""

    @property
    def target(self) -> str:
        """owner/name."""

    @property
    def head(self) -> str:
        """The commit to test."""

    @property
    def base(self) -> str:
        """The commit to compare with; "" if there is none."""

    @property
    def ref(self) -> str:
        """What was pushed, such as refs/heads/main."""

    @property
    def trigger(self) -> str:
        """What asked: push, pull_request:7."""

    @property
    def pull(self) -> int | None:
        """The pull request it is about."""

    @property
    def requested_by(self) -> str:
        """The login of whoever asked, "" for an event."""

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Fields of the configuration that hold for this campaign alone."""

    @property
    def delivery(self) -> str:
        """The delivery that brought it."""


def handle(
    session: Session,
    intent: CampaignIntent,
    *,
    wake: Callable[[], None] | None = None,
    start_delay: timedelta = timedelta(0),
) -> Campaign:
    """The campaign for the intent; made if (target, head, base, trigger) has none.

    A new one supersedes older unfinished ones of the same target, trigger and ref; one of a push has then the
    base of the oldest of them. A duplicate delivery changes nothing; if the branch returns to an earlier
    commit whose campaign was superseded, a new campaign is made. Work begins after `start_delay`, so a burst
    of pushes costs one campaign; without a delay `wake` is called after commit.
    """
    present = now()
    if intent.trigger == campaigns.PUSH:
        known = campaigns.find_unfinished_push(session, intent.target, intent.ref, intent.head)
        if known is not None:
            log.info("campaign.exists", campaign_id=known.id, target=intent.target, head=intent.head)
            return known
    campaign, new = campaigns.create(
        session,
        Campaign(
            target=intent.target,
            head=intent.head,
            base=intent.base,
            ref=intent.ref,
            trigger=intent.trigger,
            pull=intent.pull,
            requested_by=intent.requested_by,
            overrides=dict(intent.overrides),
            delivery=intent.delivery,
            state=CampaignState.PLANNING.value,
            seed=_seed(intent.target, intent.head),
            lease_until=present + start_delay if start_delay else None,
            created_at=present,
            updated_at=present,
        ),
    )
    if not new:
        log.info("campaign.exists", campaign_id=campaign.id, target=intent.target, head=intent.head)
        return campaign
    superseded = campaigns.supersede(session, campaign, present)
    log.info("campaign.created", campaign_id=campaign.id, target=intent.target, superseded=superseded)
    if wake is not None and not start_delay:  # woken now, a worker would find nothing that is due
        campaigns.after_commit(session, wake)
    return campaign


class CiIntent(Protocol):
    """A commit whose CI has ended (`bot.webhooks` makes these)."""

    @property
    def target(self) -> str:
        """owner/name."""

    @property
    def head(self) -> str:
        """The commit."""


def resume(session: Session, intent: CiIntent, *, wake: Callable[[], None]) -> int:
    """Resumes the campaigns that wait for what CI builds of a commit; returns how many."""
    resumed = campaigns.resume_waiting(session, intent.target, intent.head)
    if resumed:
        log.info("campaigns.resumed", target=intent.target, commit=intent.head, count=resumed)
        campaigns.after_commit(session, wake)
    return resumed


def _seed(target: str, head: str) -> int:
    """The seed of all random choices: equal for equal commits."""
    return zlib.crc32(f"{target}@{head}".encode()) & 0x7FFF_FFFF
