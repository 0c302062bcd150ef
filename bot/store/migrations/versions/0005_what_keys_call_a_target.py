"""Adds the stable name of targets, used in idempotency keys, which renames must not change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The stable name of existing targets is their present name."""
    with op.batch_alter_table("targets") as targets:
        targets.add_column(sa.Column("known_as", sa.Text(), nullable=True))
    op.execute("update targets set known_as = name")
    with op.batch_alter_table("targets") as targets:
        targets.alter_column("known_as", existing_type=sa.Text(), nullable=False)
        targets.create_unique_constraint("uq_targets_known_as", ["known_as"])


def downgrade() -> None:
    """Drops the column."""
    with op.batch_alter_table("targets") as targets:
        targets.drop_constraint("uq_targets_known_as", type_="unique")
        targets.drop_column("known_as")
