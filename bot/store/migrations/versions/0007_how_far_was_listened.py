"""Adds the time of a target's last poll, and that of the last applied event of an issue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TIMES = (("targets", "polled_at"), ("bugs", "told_at"))


def upgrade() -> None:
    """Empty for existing rows."""
    for table, column in _TIMES:
        with op.batch_alter_table(table) as rows:
            rows.add_column(sa.Column(column, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drops the columns."""
    for table, column in reversed(_TIMES):
        with op.batch_alter_table(table) as rows:
            rows.drop_column(column)
