"""What goes out to GitHub: effects, what stops them, and how much we may ask of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import EffectState, SuppressionCause


class Effect(Base):
    """The outbox: one intended effect on GitHub.

    An editable effect (a check run, the one comment of a pull request) is changed in place: posting it again
    with other content raises `revision`, and it is out once `sent_revision` is as high.
    """

    __tablename__ = "effects"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)  # the idempotency key
    kind: Mapped[str] = mapped_column(String(32))  # "issue", "check_run", …
    target: Mapped[str] = mapped_column(index=True)
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id"))
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    number: Mapped[int | None]  # the issue or pull request it belongs to, or is
    depends_on: Mapped[str] = mapped_column(
        String(64), default=""
    )  # the key of the effect that must be out before
    urgent: Mapped[bool] = mapped_column(default=False)  # a person waits for it: a reply to a command
    mode: Mapped[str] = mapped_column(String(16), default="")  # "dry-run", "live"; "" as its campaign says
    payload: Mapped[dict[str, Any]]  # the request's body, as GitHub's API describes it
    state: Mapped[str] = mapped_column(String(16), default=EffectState.PENDING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")  # for people
    cause: Mapped[str] = mapped_column(String(16), default=SuppressionCause.NONE.value)  # the same, for us
    attempts: Mapped[int] = mapped_column(default=0)
    not_before: Mapped[datetime | None]
    url: Mapped[str] = mapped_column(default="")
    remote_id: Mapped[str] = mapped_column(String(64), default="")  # GitHub's id of what was made
    revision: Mapped[int] = mapped_column(default=1)
    sent_revision: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]


class KillSwitch(Base):
    """While a row is here, nothing is sent; `name` is "all" or a target."""

    __tablename__ = "kill_switches"

    name: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    set_at: Mapped[datetime]


class RateUsage(Base):
    """A write to GitHub: what the limits over all processes are counted from. Old rows are dropped."""

    __tablename__ = "rate_usage"

    id: Mapped[int] = mapped_column(primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)  # its id, or "token"
    at: Mapped[datetime]
    creates_content: Mapped[bool]  # content that notifies people, which has limits of its own


class RateLimitPause(Base):
    """GitHub asked an account to wait: no requests before `until`."""

    __tablename__ = "rate_limit_pauses"

    account: Mapped[str] = mapped_column(String(32), primary_key=True)
    until: Mapped[datetime]
    reason: Mapped[str]


class CachedResponse(Base):
    """GitHub's last answer to a GET, for asking again on condition (`If-None-Match`)."""

    __tablename__ = "cached_responses"

    url: Mapped[str] = mapped_column(primary_key=True)
    etag: Mapped[str]
    body: Mapped[dict[str, Any]]  # {"value": the answer}
    at: Mapped[datetime]
