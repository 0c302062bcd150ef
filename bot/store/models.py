"""The tables. Times are UTC, aware; JSON columns hold only what their comment says."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; SQLite forgets the zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Adds the zone where the database lost it."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map = {
        datetime: UtcDateTime,
        dict[str, Any]: JSON,
        list[Any]: JSON,
        str: Text,
        bytes: LargeBinary,
    }


class DeliveryState(str, Enum):
    """What became of a delivery."""

    PENDING = "pending"
    DONE = "done"
    IGNORED = "ignored"
    FAILED = "failed"


class CampaignState(str, Enum):
    """The step a campaign is at; each is done again from its rows if a process dies in it."""

    PLANNING = "planning"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    CONFIRMING = "confirming"
    COMPARING = "comparing"
    REPORTING = "reporting"
    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens in this state."""
        return self in (CampaignState.DONE, CampaignState.FAILED, CampaignState.SUPERSEDED)


class Side(str, Enum):
    """Which of a campaign's two commits."""

    HEAD = "head"
    BASE = "base"


class Standing(str, Enum):
    """What a finding means when head is compared with base."""

    REGRESSION = "regression"  # fails at head, passes at base
    ALREADY_BROKEN = "already_broken"  # fails at both
    SUPPORT_LOST = "support_lost"  # refused as unsupported at head, passes at base
    FIXED = "fixed"  # failed at base, passes at head
    FLAKY = "flaky"  # did not repeat in fresh processes
    UNJUDGED = "unjudged"  # base unknown


class BugState(str, Enum):
    """A bug's life (DESIGN 1)."""

    NEW = "new"
    HELD = "held"
    REPORTED = "reported"
    FIXED = "fixed"
    VERIFIED = "verified"
    CLOSED = "closed"


class EffectState(str, Enum):
    """How far an effect on GitHub has come."""

    INTENDED = "intended"
    SENDING = "sending"
    SENT = "sent"
    HELD = "held"
    FAILED = "failed"


class Delivery(Base):
    """The inbox: one row for each `X-GitHub-Delivery`."""

    __tablename__ = "deliveries"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    event: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes]  # the raw body, verified
    received_at: Mapped[datetime]
    state: Mapped[str] = mapped_column(String(16), default=DeliveryState.PENDING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")  # why ignored or failed
    attempts: Mapped[int] = mapped_column(default=0)


class Toolchain(Base):
    """An installed, runnable build; `digest` names it for ever."""

    __tablename__ = "toolchains"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    backend: Mapped[str] = mapped_column(String(32))
    provisioner: Mapped[str] = mapped_column(String(32))
    label: Mapped[str]  # for people, such as "openvino 2024.0.0"
    python: Mapped[str]  # path of the interpreter
    versions: Mapped[dict[str, Any]]  # package → version
    requirements: Mapped[list[Any]]  # what a stranger pip-installs to get the same
    created_at: Mapped[datetime]


class Campaign(Base):
    """One budgeted run of ranked cases for (target, commit[, base])."""

    __tablename__ = "campaigns"
    __table_args__ = (UniqueConstraint("target", "head", "base", "trigger"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str] = mapped_column(index=True)  # owner/name
    head: Mapped[str] = mapped_column(String(64))
    base: Mapped[str] = mapped_column(String(64), default="")  # "" if there is none
    ref: Mapped[str] = mapped_column(default="")  # what was pushed, such as refs/heads/main
    trigger: Mapped[str] = mapped_column(String(32))  # "push", "pull_request:7", "manual:…"
    delivery: Mapped[str] = mapped_column(String(64), default="")
    state: Mapped[str] = mapped_column(String(16), default=CampaignState.PLANNING.value, index=True)
    reason: Mapped[str] = mapped_column(default="")  # why failed or superseded
    config: Mapped[dict[str, Any]] = mapped_column(default=dict)  # the configuration in force
    seed: Mapped[int] = mapped_column(default=0)
    head_toolchain: Mapped[str | None] = mapped_column(ForeignKey("toolchains.digest"))
    base_toolchain: Mapped[str | None] = mapped_column(ForeignKey("toolchains.digest"))
    owner: Mapped[str] = mapped_column(String(64), default="")  # the process working on it
    lease_until: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)  # of the present step
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    clock: Mapped[dict[str, Any]] = mapped_column(default=dict)  # step → seconds spent
    work: Mapped[dict[str, Any]] = mapped_column(default=dict)  # step → bot.store.work.Work.to_json()
    plan: Mapped[dict[str, Any]] = mapped_column(default=dict)  # what it was made of: bot.campaigns.plans


class CampaignCase(Base):
    """The plan: which cases a campaign runs, in which order."""

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
    """A run of a case in a fresh process, made because an accusation would follow."""

    __tablename__ = "repeats"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    side: Mapped[str] = mapped_column(String(8), primary_key=True)
    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)  # 0, 1, 2, …
    verdict: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]


class Bug(Base):
    """A bucket of findings with one signature."""

    __tablename__ = "bugs"
    __table_args__ = (UniqueConstraint("target", "signature"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str]
    signature: Mapped[str] = mapped_column(String(64))
    title: Mapped[str]
    state: Mapped[str] = mapped_column(String(16), default=BugState.NEW.value)
    reason: Mapped[str] = mapped_column(default="")  # why in this state, above all why silent
    issue: Mapped[int | None]  # number on GitHub
    first_seen: Mapped[datetime]
    last_seen: Mapped[datetime]


class Finding(Base):
    """A bad outcome of a campaign, confirmed or not, and what it means beside base."""

    __tablename__ = "findings"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id"), primary_key=True)
    case_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    standing: Mapped[str] = mapped_column(String(24))
    verdict: Mapped[str] = mapped_column(String(24))  # at head; at base for what was fixed
    signature: Mapped[str] = mapped_column(String(64))
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    head_failed: Mapped[int] = mapped_column(default=0)  # k …
    head_runs: Mapped[int] = mapped_column(default=0)  # … of n
    base_failed: Mapped[int] = mapped_column(default=0)
    base_runs: Mapped[int] = mapped_column(default=0)
    reason: Mapped[str] = mapped_column(default="")  # why it was reported or passed over


class Effect(Base):
    """The outbox: one intended effect on GitHub."""

    __tablename__ = "effects"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)  # the idempotency key
    kind: Mapped[str] = mapped_column(String(32))  # "issue", "check_run", …
    target: Mapped[str] = mapped_column(index=True)
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id"))
    bug_id: Mapped[int | None] = mapped_column(ForeignKey("bugs.id"))
    payload: Mapped[dict[str, Any]]  # the request's body, as GitHub's API describes it
    state: Mapped[str] = mapped_column(String(16), default=EffectState.INTENDED.value, index=True)
    reason: Mapped[str] = mapped_column(default="")
    attempts: Mapped[int] = mapped_column(default=0)
    not_before: Mapped[datetime | None]
    url: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]


class Brake(Base):
    """While a row is here, nothing is sent; `name` is "all" or a target."""

    __tablename__ = "brakes"

    name: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    set_at: Mapped[datetime]
