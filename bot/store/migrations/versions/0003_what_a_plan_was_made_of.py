"""Campaigns remember what their plan was made of: the sources, and how their cases were ranked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A column that is empty for the campaigns there are."""
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.add_column(sa.Column("plan", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """The way back."""
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.drop_column("plan")
