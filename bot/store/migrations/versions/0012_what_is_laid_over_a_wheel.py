"""Adds the folders of a commit that are laid over a toolchain's wheel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Existing toolchains are releases: nothing is laid over them."""
    with op.batch_alter_table("toolchains") as toolchains:
        toolchains.add_column(sa.Column("overlay", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drops the column."""
    with op.batch_alter_table("toolchains") as toolchains:
        toolchains.drop_column("overlay")
