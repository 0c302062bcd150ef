"""Adds the sources and the ranking of a plan to campaigns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Empty for existing campaigns."""
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.add_column(sa.Column("plan", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drops the column."""
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.drop_column("plan")
