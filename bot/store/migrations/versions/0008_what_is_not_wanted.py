"""Adds the stopped head of pull requests, and the cause of suppressed effects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_EFFECTS = sa.table("effects", *(sa.column(name, sa.String) for name in ("kind", "state", "reason", "cause")))
#: (cause, states, pattern of the reason); the first match applies.
_TOLD = (
    ("withdrawn", ("held", "sending"), "withdrawn%"),
    ("over_quota", ("held",), "over quota%"),
    ("checking", ("held",), "%being checked before it is filed%"),
    ("checking", ("held",), "%could not be checked before it is filed%"),
    ("no_issues", ("failed",), "not sent: issues are disabled%"),
    ("unwatched", ("failed",), "not sent: %"),
)


def upgrade() -> None:
    """Derives the causes of existing effects from their reasons."""
    with op.batch_alter_table("pulls") as pulls:
        pulls.add_column(sa.Column("stopped_head", sa.String(length=64), nullable=False, server_default=""))
    with op.batch_alter_table("effects") as effects:
        effects.add_column(sa.Column("cause", sa.String(length=16), nullable=False, server_default=""))
    named = _EFFECTS.c
    for cause, states, reason in _TOLD:
        fits = (named.cause == "", named.state.in_(states), named.reason.like(reason))
        op.execute(_EFFECTS.update().where(*fits).values(cause=cause))


def downgrade() -> None:
    """Drops the columns; the reasons have the same information."""
    with op.batch_alter_table("effects") as effects:
        effects.drop_column("cause")
    with op.batch_alter_table("pulls") as pulls:
        pulls.drop_column("stopped_head")
