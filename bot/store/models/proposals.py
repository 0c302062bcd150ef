"""Rows about regression tests that were proposed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import ProposalState
from bot.store.models.target_names import target_column


class Proposal(Base):
    """A test that was proposed: one for each signature of a target, for ever.

    The bug's row may be deleted and made again; the signature identifies the bug. A test from a passing case
    has the case's id as its signature, and shares effect, branch and number with the others of its batch.
    """

    __tablename__ = "proposals"
    __table_args__ = (UniqueConstraint("target", "signature"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str] = target_column()
    signature: Mapped[str] = mapped_column(String(64))
    effect: Mapped[str] = mapped_column(String(64), index=True)  # the key of the effect that opens it
    state: Mapped[str] = mapped_column(String(16), default=ProposalState.OPEN.value)
    reason: Mapped[str] = mapped_column(default="")  # why in this state
    number: Mapped[int | None]  # of the pull request; None until it is opened
    url: Mapped[str] = mapped_column(default="")
    branch: Mapped[str]
    path: Mapped[str]  # the file of the test
    test: Mapped[str]  # its name
    writer: Mapped[str] = mapped_column(String(32))
    proof: Mapped[dict[str, Any]] = mapped_column(
        default=dict
    )  # bot.proposals.proof: Proof; "covers" in a batch
    requested_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
