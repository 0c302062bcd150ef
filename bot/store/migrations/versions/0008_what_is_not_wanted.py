"""Which commit of a pull request somebody stopped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was stopped yet."""
    with op.batch_alter_table("pulls") as pulls:
        pulls.add_column(sa.Column("stopped_head", sa.String(length=64), nullable=False, server_default=""))


def downgrade() -> None:
    """The way back."""
    with op.batch_alter_table("pulls") as pulls:
        pulls.drop_column("stopped_head")
