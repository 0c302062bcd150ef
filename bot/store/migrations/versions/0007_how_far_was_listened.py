"""Up to when a target was polled, and which of the events of an issue is the last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TIMES = (("targets", "polled_at"), ("bugs", "told_at"))


def upgrade() -> None:
    """Nothing was polled or told yet."""
    for table, column in _TIMES:
        with op.batch_alter_table(table) as rows:
            rows.add_column(sa.Column(column, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """The way back."""
    for table, column in reversed(_TIMES):
        with op.batch_alter_table(table) as rows:
            rows.drop_column(column)
