"""Adds event counts, by which answers from GitHub that are older than an event are recognized."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TOLD = ("installations", "targets")


def upgrade() -> None:
    """Counts start at zero."""
    for table in _TOLD:
        with op.batch_alter_table(table) as rows:
            rows.add_column(sa.Column("told", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("duties") as duties:
        duties.add_column(sa.Column("hurried", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drops the columns."""
    with op.batch_alter_table("duties") as duties:
        duties.drop_column("hurried")
    for table in reversed(_TOLD):
        with op.batch_alter_table(table) as rows:
            rows.drop_column("told")
