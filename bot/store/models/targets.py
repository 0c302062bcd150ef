"""Watched repositories, their pull requests, mutes, audit events and periodic tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import TargetState
from bot.store.models.target_names import target_column


class Installation(Base):
    """An installation of the GitHub App."""

    __tablename__ = "installations"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)  # GitHub's
    account: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), default=TargetState.WATCHED.value)
    permissions: Mapped[dict[str, Any]] = mapped_column(default=dict)  # permission → read or write
    events: Mapped[list[Any]] = mapped_column(default=list)
    changed_at: Mapped[datetime]
    event_count: Mapped[int] = mapped_column(
        default=0
    )  # number of events about it: data read before the last one is stale


def _default_stable_name(context: Any) -> str:
    """The stable name of a target if it is still free (`bot.store.targets.ensure`)."""
    return str(context.get_current_parameters()["name"])


class Target(Base):
    """A watched repository."""

    __tablename__ = "targets"

    name: Mapped[str] = target_column("id", "name", primary_key=True)  # owner/name
    # The first name it had here; unique and never changed, since idempotency keys contain it.
    stable_name: Mapped[str] = mapped_column(unique=True, default=_default_stable_name)
    github_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    installation_id: Mapped[int | None] = mapped_column(ForeignKey("installations.id"))
    state: Mapped[str] = mapped_column(String(16), default=TargetState.WATCHED.value)
    reason: Mapped[str] = mapped_column(default="")
    default_branch: Mapped[str] = mapped_column(default="")
    private: Mapped[bool] = mapped_column(default=True)  # until GitHub was asked
    has_issues: Mapped[bool] = mapped_column(default=True)
    heads: Mapped[dict[str, Any]] = mapped_column(default=dict)  # watched branch → {"commit", "at"}
    # Of the configuration on the default branch: {"branches", "gate", "commit"}; {} while unread.
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    schedules: Mapped[list[Any]] = mapped_column(default=list)  # its {"name", "cron", …, "next"}
    last_event_at: Mapped[datetime | None]  # a delivery about it
    reconciled_at: Mapped[datetime | None]
    event_count: Mapped[int] = mapped_column(default=0)  # as in Installation
    polled_at: Mapped[datetime | None]  # last poll of what no webhook reports
    removed_at: Mapped[datetime | None]


class Pull(Base):
    """A pull request in its last known state."""

    __tablename__ = "pulls"

    target: Mapped[str] = target_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    head: Mapped[str] = mapped_column(String(64))
    base: Mapped[str] = mapped_column(String(64))  # the commit it is compared with
    base_ref: Mapped[str]
    head_repository: Mapped[str] = mapped_column(default="")  # "" if the fork was deleted
    author: Mapped[str]
    association: Mapped[str] = mapped_column(String(32), default="NONE")  # GitHub's author_association
    draft: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(String(16), default="open")  # open, closed, merged
    approved_head: Mapped[str] = mapped_column(String(64), default="")  # the only commit that may run
    approved_by: Mapped[str] = mapped_column(default="")
    stopped_head: Mapped[str] = mapped_column(String(64), default="")  # not tested until requested
    updated_at: Mapped[datetime]  # GitHub's time: older data changes nothing
    head_at: Mapped[datetime] = mapped_column(  # updated_at of the first known state with this head
        default=lambda context: context.get_current_parameters()["updated_at"]
    )


class Mute(Base):
    """A maintainer's decision not to report an operator, and until when."""

    __tablename__ = "mutes"

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str] = target_column(index=True)
    operator: Mapped[str]  # a glob over operators
    until: Mapped[datetime]
    by: Mapped[str]
    reason: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]


class AuditEvent(Base):
    """The audit log: one event with actor, reason and evidence. Append-only."""

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    target: Mapped[str] = target_column(index=True)
    actor: Mapped[str]  # a login, or "assay"
    action: Mapped[str] = mapped_column(String(32))  # a verb: "filed", "held", "muted", "approved", …
    subject: Mapped[str] = mapped_column(
        String(80), index=True
    )  # "bug:12", "campaign:4", "pull:7", "effect:…"
    reason: Mapped[str]
    evidence: Mapped[dict[str, Any]] = mapped_column(default=dict)


class PeriodicTask(Base):
    """Periodic work of one process at a time: when it was last done, and its lease."""

    __tablename__ = "periodic_tasks"

    name: Mapped[str] = mapped_column(primary_key=True)
    done_at: Mapped[datetime | None]
    rerun_requested: Mapped[bool] = mapped_column(default=False)  # requested again while it runs
    owner: Mapped[str] = mapped_column(String(64), default="")
    lease_until: Mapped[datetime | None]
    note: Mapped[str] = mapped_column(default="")
    saved_state: Mapped[dict[str, Any]] = mapped_column(default=dict)  # state for the next run
