"""Rows about requests to GitHub: effects, kill switches and rate limits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import EffectState, SuppressionCause
from bot.store.models.target_names import target_column


class Effect(Base):
    """The outbox: one intended effect on GitHub.

    An editable effect (a check run, the sticky comment of a pull request) is updated in place: posting it
    again with other content raises `revision`, and it is published once `sent_revision` equals that.
    """

    __tablename__ = "effects"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)  # the idempotency key
    kind: Mapped[str] = mapped_column(String(32))  # "issue", "check_run", …
    target: Mapped[str] = target_column(index=True)
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id"))
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    number: Mapped[int | None]  # of the issue or pull request
    depends_on: Mapped[str] = mapped_column(
        String(64), default=""
    )  # the key of the effect that must be sent before
    urgent: Mapped[bool] = mapped_column(default=False)  # a person waits for it: a reply to a command
    mode: Mapped[str] = mapped_column(String(16), default="")  # "dry-run", "live"; "" for the campaign's mode
    payload: Mapped[dict[str, Any]]  # the request's body, as GitHub's API describes it
    state: Mapped[str] = mapped_column(String(16), default=EffectState.PENDING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")  # for people
    cause: Mapped[str] = mapped_column(String(16), default=SuppressionCause.NONE.value)  # the same, for code
    attempts: Mapped[int] = mapped_column(default=0)
    not_before: Mapped[datetime | None]
    url: Mapped[str] = mapped_column(default="")
    remote_id: Mapped[str] = mapped_column(String(64), default="")  # GitHub's id of the created object
    revision: Mapped[int] = mapped_column(default=1)
    sent_revision: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]


class KillSwitch(Base):
    """A kill switch: while the row exists nothing is sent; `name` is "all" or a target's."""

    __tablename__ = "kill_switches"

    name: Mapped[str] = target_column("target_id", "name", primary_key=True)
    reason: Mapped[str]
    set_at: Mapped[datetime]


class RateUsage(Base):
    """A write to GitHub, counted by the rate limits of all processes. Old rows are deleted."""

    __tablename__ = "rate_usage"

    id: Mapped[int] = mapped_column(primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)  # the installation's id, or "token"
    at: Mapped[datetime]
    creates_content: Mapped[bool]  # creates content, which has limits of its own


class RateLimitPause(Base):
    """A pause that GitHub requested for an account: no requests before `until`."""

    __tablename__ = "rate_limit_pauses"

    account: Mapped[str] = mapped_column(String(32), primary_key=True)
    until: Mapped[datetime]
    reason: Mapped[str]


class CachedResponse(Base):
    """GitHub's last response to a GET, for conditional requests (`If-None-Match`)."""

    __tablename__ = "cached_responses"

    url: Mapped[str] = mapped_column(primary_key=True)
    etag: Mapped[str]
    body: Mapped[dict[str, Any]]  # {"value": the answer}
    at: Mapped[datetime]
