"""Campaigns: their plans, toolchains, outcomes and findings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import CampaignState
from bot.store.models.target_names import target_column


class Toolchain(Base):
    """An installed build of a compiler, named by `digest`."""

    __tablename__ = "toolchains"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    backend: Mapped[str] = mapped_column(String(32))
    provisioner: Mapped[str] = mapped_column(String(32))
    label: Mapped[str]  # for people, such as "openvino 2024.0.0"
    python: Mapped[str]  # path of the interpreter
    versions: Mapped[dict[str, Any]]  # package → version
    requirements: Mapped[list[Any]]  # what to pip-install to get the same build
    # Folder of the commit → folder in site-packages, of what is laid over the wheel
    overlay: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    created_at: Mapped[datetime]


class Campaign(Base):
    """One budgeted run of ranked cases for (target, commit[, base])."""

    __tablename__ = "campaigns"
    __table_args__ = (UniqueConstraint("target", "head", "base", "trigger"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str] = target_column(index=True)  # owner/name
    head: Mapped[str] = mapped_column(String(64))
    base: Mapped[str] = mapped_column(String(64), default="")  # "" if there is none
    ref: Mapped[str] = mapped_column(default="")  # what was pushed, such as refs/heads/main
    # What requested it: a push, pull_request:7, schedule:nightly, command:COMMENT, manual:…
    trigger: Mapped[str] = mapped_column(String(64))
    pull: Mapped[int | None]  # the pull request it tests
    requested_by: Mapped[str] = mapped_column(default="")  # login of the user, "" for an event
    overrides: Mapped[dict[str, Any]] = mapped_column(default=dict)  # set by a command or schedule
    delivery: Mapped[str] = mapped_column(String(64), default="")
    state: Mapped[str] = mapped_column(String(16), default=CampaignState.PLANNING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")  # why failed or superseded
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)  # the configuration in force
    seed: Mapped[int] = mapped_column(default=0)
    head_toolchain: Mapped[str | None] = mapped_column(ForeignKey("toolchains.digest"))
    base_toolchain: Mapped[str | None] = mapped_column(ForeignKey("toolchains.digest"))
    owner: Mapped[str] = mapped_column(String(64), default="")  # the process working on it
    lease_until: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)  # of the current step
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    clock: Mapped[dict[str, Any]] = mapped_column(default=dict)  # step → seconds spent
    costs: Mapped[dict[str, Any]] = mapped_column(default=dict)  # step → bot.store.step_cost
    plan: Mapped[dict[str, Any]] = mapped_column(
        default=dict
    )  # keys: see bot.campaigns.plan.planner, and "reductions"


class CampaignCase(Base):
    """The plan: the cases of a campaign in their order."""

    __tablename__ = "campaign_cases"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    rank: Mapped[int] = mapped_column(primary_key=True)
    case_id: Mapped[str] = mapped_column(String(64), index=True)


class OutcomeRow(Base):
    """Verdicts, cached by (case, toolchain, backend, device, configuration)."""

    __tablename__ = "outcomes"

    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    toolchain: Mapped[str] = mapped_column(String(64), primary_key=True)
    backend: Mapped[str] = mapped_column(String(32), primary_key=True)
    device: Mapped[str] = mapped_column(String(32), primary_key=True)
    configuration: Mapped[str] = mapped_column(primary_key=True, default="")  # as in Outcome
    verdict: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]  # fuzzing.outcomes.Outcome.to_json()
    recorded_at: Mapped[datetime]

    __table_args__ = (Index("ix_outcomes_toolchain_verdict", "toolchain", "verdict"),)


class Repeat(Base):
    """A run of a failing case in a fresh process, to confirm the failure."""

    __tablename__ = "repeats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    side: Mapped[str] = mapped_column(String(8), primary_key=True)
    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)  # 0, 1, 2, …
    verdict: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]


class Finding(Base):
    """A failure in a campaign, confirmed or not, and its classification."""

    __tablename__ = "findings"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    classification: Mapped[str] = mapped_column(String(24))
    verdict: Mapped[str] = mapped_column(String(24))  # at head; at base for fixed ones
    signature: Mapped[str] = mapped_column(String(64))
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    reduced: Mapped[str] = mapped_column(String(64), default="")  # the reduced case, "" if there is none
    head_failed: Mapped[int] = mapped_column(default=0)  # k …
    head_runs: Mapped[int] = mapped_column(default=0)  # … of n
    base_failed: Mapped[int] = mapped_column(default=0)
    base_runs: Mapped[int] = mapped_column(default=0)
    reason: Mapped[str] = mapped_column(default="")  # why it was reported or not


class Reduction(Base):
    """Result of reducing a failing case; cached like outcomes."""

    __tablename__ = "reductions"

    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    toolchain: Mapped[str] = mapped_column(String(64), primary_key=True)
    backend: Mapped[str] = mapped_column(String(32), primary_key=True)
    device: Mapped[str] = mapped_column(String(32), primary_key=True)
    configuration: Mapped[str] = mapped_column(primary_key=True, default="")
    reduced: Mapped[str] = mapped_column(String(64), default="")  # "" if reduction failed, see reason
    reason: Mapped[str] = mapped_column(default="")
    runs: Mapped[int] = mapped_column(default=0)
    seconds: Mapped[float] = mapped_column(default=0.0)
    body: Mapped[dict[str, Any]] = mapped_column(default=dict)  # the program's last event: symptom, traits, …
    recorded_at: Mapped[datetime]
