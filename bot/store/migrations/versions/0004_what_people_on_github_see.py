"""Adds watched repositories, pull requests, commands, states of bugs and editable effects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables; defaults of new columns mean that nothing happened yet."""
    op.create_table(
        "answers",
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("url"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=80), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_subject", "audit", ["subject"])
    op.create_index("ix_audit_target", "audit", ["target"])

    op.create_table(
        "commands",
        sa.Column("comment", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("delivery", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("comment", "position"),
    )
    op.create_index("ix_commands_target", "commands", ["target"])

    op.create_table(
        "duties",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("memory", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "installations",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("permissions", sa.JSON(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "mutes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_mutes_target", "mutes", ["target"])

    op.create_table(
        "pauses",
        sa.Column("installation", sa.String(length=32), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("installation"),
    )
    op.create_table(
        "pulls",
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=False),
        sa.Column("base", sa.String(length=64), nullable=False),
        sa.Column("base_ref", sa.Text(), nullable=False),
        sa.Column("head_repository", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("association", sa.String(length=32), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("approved_head", sa.String(length=64), nullable=False),
        sa.Column("approved_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("target", "number"),
    )
    op.create_table(
        "reductions",
        sa.Column("case_id", sa.String(length=64), nullable=False),
        sa.Column("toolchain", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=32), nullable=False),
        sa.Column("device", sa.String(length=32), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=False),
        sa.Column("reduced", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("case_id", "toolchain", "backend", "device", "configuration"),
    )
    op.create_table(
        "spending",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("installation", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("creates", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_spending_installation", "spending", ["installation"])

    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Integer(), nullable=True),
        sa.Column("bug_id", sa.Integer(), nullable=True),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["bug_id"], ["bugs.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    op.create_index("ix_jobs_state", "jobs", ["state"])
    op.create_index("ix_jobs_target", "jobs", ["target"])

    op.create_table(
        "retests",
        sa.Column("bug_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("commit", sa.String(length=64), nullable=False),
        sa.Column("toolchain", sa.String(length=64), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("healthy", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["bug_id"], ["bugs.id"]),
        sa.PrimaryKeyConstraint("bug_id", "number"),
    )
    op.create_table(
        "targets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("github_id", sa.BigInteger(), nullable=True),
        sa.Column("installation_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("has_issues", sa.Boolean(), nullable=False),
        sa.Column("heads", sa.JSON(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("schedules", sa.JSON(), nullable=False),
        sa.Column("last_event_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reconciled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["installation_id"], ["installations.id"]),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_targets_github_id", "targets", ["github_id"])

    with op.batch_alter_table("bugs") as bugs:
        bugs.add_column(sa.Column("case_id", sa.String(length=64), nullable=False, server_default=""))
        bugs.add_column(sa.Column("backend", sa.String(length=32), nullable=False, server_default=""))
        bugs.add_column(sa.Column("device", sa.String(length=32), nullable=False, server_default=""))
        bugs.add_column(sa.Column("configuration", sa.Text(), nullable=False, server_default=""))
        bugs.add_column(sa.Column("campaign_id", sa.Integer(), nullable=True))
        bugs.add_column(sa.Column("seen", sa.Integer(), nullable=False, server_default="0"))
        bugs.add_column(sa.Column("duplicate_of", sa.Integer(), nullable=True))
        bugs.add_column(sa.Column("ruling", sa.String(length=16), nullable=False, server_default=""))
        bugs.add_column(sa.Column("fixed_by", sa.String(length=64), nullable=False, server_default=""))
        bugs.add_column(sa.Column("traits", sa.JSON(), nullable=False, server_default="{}"))
        bugs.add_column(sa.Column("facts", sa.JSON(), nullable=False, server_default="{}"))
        bugs.create_foreign_key("bugs_duplicate_of", "bugs", ["duplicate_of"], ["id"])

    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.add_column(sa.Column("pull", sa.Integer(), nullable=True))
        campaigns.add_column(sa.Column("asked_by", sa.Text(), nullable=False, server_default=""))
        campaigns.add_column(sa.Column("overrides", sa.JSON(), nullable=False, server_default="{}"))
        campaigns.alter_column(
            "trigger",
            existing_type=sa.VARCHAR(length=32),
            type_=sa.String(length=64),
            existing_nullable=False,
        )

    with op.batch_alter_table("effects") as effects:
        effects.add_column(sa.Column("number", sa.Integer(), nullable=True))
        effects.add_column(sa.Column("after", sa.String(length=64), nullable=False, server_default=""))
        effects.add_column(sa.Column("urgent", sa.Boolean(), nullable=False, server_default=sa.false()))
        effects.add_column(sa.Column("mode", sa.String(length=16), nullable=False, server_default=""))
        effects.add_column(sa.Column("remote", sa.String(length=64), nullable=False, server_default=""))
        effects.add_column(sa.Column("revision", sa.Integer(), nullable=False, server_default="1"))
        effects.add_column(sa.Column("sent_revision", sa.Integer(), nullable=False, server_default="0"))

    with op.batch_alter_table("findings") as findings:
        findings.add_column(sa.Column("reduced", sa.String(length=64), nullable=False, server_default=""))


def downgrade() -> None:
    """Drops tables and columns."""

    with op.batch_alter_table("findings") as findings:
        findings.drop_column("reduced")

    with op.batch_alter_table("effects") as effects:
        effects.drop_column("sent_revision")
        effects.drop_column("revision")
        effects.drop_column("remote")
        effects.drop_column("mode")
        effects.drop_column("urgent")
        effects.drop_column("after")
        effects.drop_column("number")

    with op.batch_alter_table("campaigns") as campaigns:
        campaigns.alter_column(
            "trigger",
            existing_type=sa.String(length=64),
            type_=sa.VARCHAR(length=32),
            existing_nullable=False,
        )
        campaigns.drop_column("overrides")
        campaigns.drop_column("asked_by")
        campaigns.drop_column("pull")

    with op.batch_alter_table("bugs") as bugs:
        bugs.drop_constraint("bugs_duplicate_of", type_="foreignkey")
        bugs.drop_column("facts")
        bugs.drop_column("traits")
        bugs.drop_column("fixed_by")
        bugs.drop_column("ruling")
        bugs.drop_column("duplicate_of")
        bugs.drop_column("seen")
        bugs.drop_column("campaign_id")
        bugs.drop_column("configuration")
        bugs.drop_column("device")
        bugs.drop_column("backend")
        bugs.drop_column("case_id")

    op.drop_index("ix_targets_github_id", "targets")

    op.drop_table("targets")
    op.drop_table("retests")
    op.drop_index("ix_jobs_target", "jobs")
    op.drop_index("ix_jobs_state", "jobs")

    op.drop_table("jobs")
    op.drop_index("ix_spending_installation", "spending")

    op.drop_table("spending")
    op.drop_table("reductions")
    op.drop_table("pulls")
    op.drop_table("pauses")
    op.drop_index("ix_mutes_target", "mutes")

    op.drop_table("mutes")
    op.drop_table("installations")
    op.drop_table("duties")
    op.drop_index("ix_commands_target", "commands")

    op.drop_table("commands")
    op.drop_index("ix_audit_target", "audit")
    op.drop_index("ix_audit_subject", "audit")

    op.drop_table("audit")
    op.drop_table("answers")
