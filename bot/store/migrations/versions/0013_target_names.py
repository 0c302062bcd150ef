"""Gives target names a table, to which all others refer by key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

#: Table, the column with the name, and what it is called as a key
_COLUMNS = (
    ("audit_events", "target", "target_id"),
    ("bugs", "target", "target_id"),
    ("campaigns", "target", "target_id"),
    ("commands", "target", "target_id"),
    ("effects", "target", "target_id"),
    ("jobs", "target", "target_id"),
    ("kill_switches", "name", "target_id"),
    ("mutes", "target", "target_id"),
    ("proposals", "target", "target_id"),
    ("pulls", "target", "target_id"),
    ("targets", "name", "id"),
)
_INDEXED = ("audit_events", "campaigns", "commands", "effects", "jobs", "mutes")


def upgrade() -> None:
    """Collects the names and replaces them by their keys. A column keeps its place in constraints."""
    op.create_table(
        "target_names",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
    )
    names = " UNION ".join(f"SELECT {name} FROM {table}" for table, name, _ in _COLUMNS)  # noqa: S608
    op.execute(f"INSERT INTO target_names (name) {names}")
    for table in _INDEXED:
        op.drop_index(f"ix_{table}_target", table_name=table)
    for table, name, key in _COLUMNS:
        _replace(table, name, "SELECT CAST(id AS TEXT) FROM target_names WHERE name")
        with op.batch_alter_table(table) as altered:
            altered.alter_column(
                name, existing_type=sa.Text(), type_=sa.Integer(), postgresql_using=f"{name}::integer"
            )
            altered.create_foreign_key(f"{table}_target", "target_names", [name], ["id"])
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {name} TO {key}")
    for table in _INDEXED:
        op.create_index(f"ix_{table}_target_id", table, ["target_id"])


def downgrade() -> None:
    """Replaces the keys by their names and drops the table."""
    for table in _INDEXED:
        op.drop_index(f"ix_{table}_target_id", table_name=table)
    for table, name, key in _COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {key} TO {name}")
        with op.batch_alter_table(table) as altered:
            altered.drop_constraint(f"{table}_target", type_="foreignkey")
            altered.alter_column(
                name, existing_type=sa.Integer(), type_=sa.Text(), postgresql_using=f"{name}::text"
            )
        _replace(table, name, "SELECT name FROM target_names WHERE CAST(id AS TEXT)")
    for table in _INDEXED:
        op.create_index(f"ix_{table}_target", table, ["target"])
    op.drop_table("target_names")


def _replace(table: str, column: str, found: str) -> None:
    op.execute(f"UPDATE {table} SET {column} = ({found} = {table}.{column})")  # noqa: S608
