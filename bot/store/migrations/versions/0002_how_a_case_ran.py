"""Adds the configuration to the key of outcomes, and the cost of shards to campaigns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEY = ("case_id", "toolchain", "backend", "device")
_REST = ("verdict", "body", "recorded_at")


def upgrade() -> None:
    """Existing outcomes are of the default configuration."""
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.add_column(sa.Column("work", sa.JSON(), nullable=False, server_default="{}"))
    _remake_outcomes((*_KEY, "configuration"), "''")


def downgrade() -> None:
    """Keeps only outcomes of the default configuration."""
    op.execute(sa.text("DELETE FROM outcomes WHERE configuration <> ''"))
    _remake_outcomes(_KEY, "")
    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.drop_column("work")


def _remake_outcomes(key: tuple[str, ...], added: str) -> None:
    """Copies the table to one with another key: SQLite cannot change a primary key in place."""
    op.drop_index("ix_outcomes_toolchain_verdict", "outcomes")
    op.rename_table("outcomes", "outcomes_before")
    wider = [sa.Column("configuration", sa.Text(), nullable=False)] if "configuration" in key else []
    op.create_table(
        "outcomes",
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.Column("toolchain", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=32), nullable=False),
        sa.Column("device", sa.String(length=32), nullable=False),
        *wider,
        sa.Column("verdict", sa.String(length=24), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        # Unlike the name in the replaced table, which PostgreSQL keeps until the end.
        sa.PrimaryKeyConstraint(*key, name=f"outcomes_key_{len(key)}"),
    )
    kept = ", ".join((*_KEY, *_REST))
    given = f"{kept}, {added}" if added else kept
    columns = f"{kept}, configuration" if added else kept
    op.execute(sa.text(f"INSERT INTO outcomes ({columns}) SELECT {given} FROM outcomes_before"))  # noqa: S608
    op.drop_table("outcomes_before")
    op.create_index("ix_outcomes_toolchain_verdict", "outcomes", ["toolchain", "verdict"])
