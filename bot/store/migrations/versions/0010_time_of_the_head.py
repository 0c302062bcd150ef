"""Adds the time at which the head of a pull request became known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_PULLS = sa.table("pulls", sa.column("updated_at"), sa.column("head_at"))


def upgrade() -> None:
    """Takes the last update for existing rows, which is at least as late."""
    with op.batch_alter_table("pulls") as pulls:
        pulls.add_column(sa.Column("head_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(_PULLS.update().values(head_at=_PULLS.c.updated_at))
    with op.batch_alter_table("pulls") as pulls:
        pulls.alter_column("head_at", nullable=False)


def downgrade() -> None:
    """Drops the column."""
    with op.batch_alter_table("pulls") as pulls:
        pulls.drop_column("head_at")
