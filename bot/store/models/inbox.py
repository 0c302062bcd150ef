"""Rows received from GitHub: deliveries and commands in comments."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from bot.store.models.base import Base
from bot.store.models.states import CommandState, DeliveryState
from bot.store.models.target_names import target_column


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


class Command(Base):
    """A command in a comment; unique by the comment's id and position, however often it is delivered."""

    __tablename__ = "commands"

    comment: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    position: Mapped[int] = mapped_column(primary_key=True)  # 0 for the first command of the comment
    target: Mapped[str] = target_column(index=True)
    number: Mapped[int]  # the issue or pull request
    author: Mapped[str]
    text: Mapped[str]
    head: Mapped[str] = mapped_column(String(64), default="")  # the pull request's, when the comment arrived
    role: Mapped[str] = mapped_column(String(16), default="")  # the author's, once requested
    state: Mapped[str] = mapped_column(String(16), default=CommandState.PENDING.value)
    reason: Mapped[str] = mapped_column(default="")
    delivery: Mapped[str] = mapped_column(String(64), default="")
    created_at: Mapped[datetime]
    done_at: Mapped[datetime | None]
