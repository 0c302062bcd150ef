"""Initial tables: inbox, toolchains, campaigns, outcomes, findings, bugs, outbox, kill switches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "brakes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "bugs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(length=64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("issue", sa.Integer(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("target", "signature"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_deliveries_state", "deliveries", ["state"])

    op.create_table(
        "outcomes",
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.Column("toolchain", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=32), nullable=False),
        sa.Column("device", sa.String(length=32), nullable=False),
        sa.Column("verdict", sa.String(length=24), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("case_id", "toolchain", "backend", "device"),
    )
    op.create_index("ix_outcomes_toolchain_verdict", "outcomes", ["toolchain", "verdict"])

    op.create_table(
        "toolchains",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=32), nullable=False),
        sa.Column("provisioner", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("python", sa.Text(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("requirements", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=False),
        sa.Column("base", sa.String(length=64), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("trigger", sa.String(length=32), nullable=False),
        sa.Column("delivery", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("head_toolchain", sa.String(length=64), nullable=True),
        sa.Column("base_toolchain", sa.String(length=64), nullable=True),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("clock", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["base_toolchain"],
            ["toolchains.digest"],
        ),
        sa.ForeignKeyConstraint(
            ["head_toolchain"],
            ["toolchains.digest"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("target", "head", "base", "trigger"),
    )
    op.create_index("ix_campaigns_state", "campaigns", ["state"])
    op.create_index("ix_campaigns_target", "campaigns", ["target"])

    op.create_table(
        "campaign_cases",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaigns.id"],
        ),
        sa.PrimaryKeyConstraint("campaign_id", "rank"),
    )
    op.create_index("ix_campaign_cases_case_id", "campaign_cases", ["case_id"])

    op.create_table(
        "effects",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=True),
        sa.Column("bug_id", sa.Integer(), nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["bug_id"],
            ["bugs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaigns.id"],
        ),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_effects_state", "effects", ["state"])
    op.create_index("ix_effects_target", "effects", ["target"])

    op.create_table(
        "findings",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.Column("standing", sa.String(length=24), nullable=False),
        sa.Column("verdict", sa.String(length=24), nullable=False),
        sa.Column("signature", sa.String(length=64), nullable=False),
        sa.Column("bug_id", sa.Integer(), nullable=True),
        sa.Column("head_failed", sa.Integer(), nullable=False),
        sa.Column("head_runs", sa.Integer(), nullable=False),
        sa.Column("base_failed", sa.Integer(), nullable=False),
        sa.Column("base_runs", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["bug_id"],
            ["bugs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaigns.id"],
        ),
        sa.PrimaryKeyConstraint("campaign_id", "case_id"),
    )
    op.create_table(
        "repeats",
        sa.Column("campaign_id", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(length=8), nullable=False),
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=24), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaigns.id"],
        ),
        sa.PrimaryKeyConstraint("campaign_id", "side", "case_id", "number"),
    )


def downgrade() -> None:
    """Drops them."""
    op.drop_table("repeats")
    op.drop_table("findings")
    op.drop_table("effects")
    op.drop_table("campaign_cases")
    op.drop_table("campaigns")
    op.drop_table("toolchains")
    op.drop_table("outcomes")
    op.drop_table("deliveries")
    op.drop_table("bugs")
    op.drop_table("brakes")
