"""Bugs, their retests and jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import BugState, JobState
from bot.store.models.target_names import target_column


class Bug(Base):
    """The findings of a target with one signature."""

    __tablename__ = "bugs"
    __table_args__ = (UniqueConstraint("target", "signature"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str] = target_column()
    signature: Mapped[str] = mapped_column(String(64))
    title: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), default=BugState.NEW.value)
    reason: Mapped[str] = mapped_column(default="")  # why in this state
    issue: Mapped[int | None]  # number on GitHub
    issue_updated_at: Mapped[datetime | None]  # GitHub's time of the last change by a person
    first_seen: Mapped[datetime]
    last_seen: Mapped[datetime]
    # How the smallest known case is run; "" until a campaign has reduced one.
    case_id: Mapped[str] = mapped_column(String(64), default="")
    backend: Mapped[str] = mapped_column(String(32), default="")
    device: Mapped[str] = mapped_column(String(32), default="")
    configuration: Mapped[str] = mapped_column(default="")
    campaign_id: Mapped[int | None]  # the last that saw it; no foreign key, as campaigns are deleted
    seen: Mapped[int] = mapped_column(default=0)  # number of campaigns that saw it
    duplicate_of: Mapped[int | None] = mapped_column(ForeignKey("bugs.id", name="bugs_duplicate_of"))
    resolution: Mapped[str] = mapped_column(String(16), default="")  # a maintainer's: "invalid", "" for none
    fixed_by: Mapped[str] = mapped_column(String(64), default="")  # the fixing commit, if known
    traits: Mapped[dict[str, Any]] = mapped_column(default=dict)  # fuzzing.triage: Traits of that case
    facts: Mapped[dict[str, Any]] = mapped_column(
        default=dict
    )  # "bisection", "localization", "occurrence", …


class Retest(Base):
    """A run of a bug's case on another toolchain, to see whether it still fails."""

    __tablename__ = "retests"

    bug_id: Mapped[int] = mapped_column(ForeignKey("bugs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)  # 0, 1, 2, …
    purpose: Mapped[str] = mapped_column(String(16))  # "fix", "newest", "obsolete", "asked"
    commit: Mapped[str] = mapped_column(String(64), default="")
    toolchain: Mapped[str] = mapped_column(String(64))
    runs: Mapped[int]
    failed: Mapped[int]
    control_passed: Mapped[bool]  # a control case passed on this build
    at: Mapped[datetime]


class Job(Base):
    """Queued work about a bug or a campaign: reduce, bisect, localize, retest."""

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)  # unique: one job a key
    kind: Mapped[str] = mapped_column(String(32))
    target: Mapped[str] = target_column(index=True)
    campaign_id: Mapped[int | None]
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    arguments: Mapped[dict[str, Any]] = mapped_column(default=dict)
    requested_by: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(String(16), default=JobState.PENDING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    owner: Mapped[str] = mapped_column(String(64), default="")
    lease_until: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    done_at: Mapped[datetime | None]
