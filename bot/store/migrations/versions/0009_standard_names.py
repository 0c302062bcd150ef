"""Tables, columns and stored words get the names that the code uses."""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TABLES = {
    "answers": "cached_responses",
    "audit": "audit_events",
    "brakes": "kill_switches",
    "duties": "periodic_tasks",
    "pauses": "rate_limit_pauses",
    "spending": "rate_usage",
}
#: (new table, old column, new column)
_COLUMNS = (
    ("audit_events", "who", "actor"),
    ("audit_events", "what", "action"),
    ("audit_events", "why", "reason"),
    ("bugs", "ruling", "resolution"),
    ("bugs", "told_at", "issue_updated_at"),
    ("campaigns", "asked_by", "requested_by"),
    ("campaigns", "work", "costs"),
    ("effects", "after", "depends_on"),
    ("effects", "remote", "remote_id"),
    ("findings", "standing", "classification"),
    ("installations", "told", "event_count"),
    ("jobs", "asked_by", "requested_by"),
    ("periodic_tasks", "hurried", "rerun_requested"),
    ("periodic_tasks", "memory", "saved_state"),
    ("rate_limit_pauses", "installation", "account"),
    ("rate_usage", "creates", "creates_content"),
    ("rate_usage", "installation", "account"),
    ("retests", "healthy", "control_passed"),
    ("targets", "known_as", "stable_name"),
    ("targets", "told", "event_count"),
)
#: (new table, old index, new index, old column, new column)
_INDEXES = (
    ("audit_events", "ix_audit_target", "ix_audit_events_target", "target", "target"),
    ("audit_events", "ix_audit_subject", "ix_audit_events_subject", "subject", "subject"),
    ("rate_usage", "ix_spending_installation", "ix_rate_usage_account", "installation", "account"),
)
#: (table, column, old value, new value)
_VALUES = (
    ("audit_events", "action", "localise", "localize"),
    ("effects", "state", "intended", "pending"),
    ("findings", "classification", "unjudged", "inconclusive"),
    ("jobs", "kind", "localise", "localize"),
    ("periodic_tasks", "name", "reconcile", "reconciliation"),
    ("periodic_tasks", "name", "redeliver", "redelivery"),
    ("periodic_tasks", "name", "silence", "stale_bugs"),
    ("periodic_tasks", "name", "upkeep", "cleanup"),
)
#: (table, JSON column, old key → new key)
_KEYS = (
    ("bugs", "facts", {"lives": "occurrence", "localisation": "localization"}),
    ("jobs", "arguments", {"turn": "run_number", "asked_by": "requested_by"}),
)


def upgrade() -> None:
    """Renames tables, columns, indexes, stored values and keys of JSON objects."""
    for old, new in _TABLES.items():
        op.rename_table(old, new)
    for table, old_index, _, _, _ in _INDEXES:
        op.drop_index(old_index, table_name=table)
    for table, old, new in _COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for table, _, new_index, _, column in _INDEXES:
        op.create_index(new_index, table, [column])
    with op.batch_alter_table("targets") as targets:
        targets.drop_constraint("uq_targets_known_as", type_="unique")
        targets.create_unique_constraint("uq_targets_stable_name", ["stable_name"])
    for table, column, old, new in _VALUES:
        _replace_value(table, column, old, new)
    for table, column, keys in _KEYS:
        _rename_keys(table, column, keys)


def downgrade() -> None:
    """The way back, in reverse order."""
    for table, column, keys in _KEYS:
        _rename_keys(table, column, {new: old for old, new in keys.items()})
    for table, column, old, new in _VALUES:
        _replace_value(table, column, new, old)
    with op.batch_alter_table("targets") as targets:
        targets.drop_constraint("uq_targets_stable_name", type_="unique")
        targets.create_unique_constraint("uq_targets_known_as", ["stable_name"])
    for table, _, new_index, _, _ in _INDEXES:
        op.drop_index(new_index, table_name=table)
    for table, old, new in _COLUMNS:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {new} TO {old}")
    for table, old_index, _, column, _ in _INDEXES:
        op.create_index(old_index, table, [column])
    for old, new in _TABLES.items():
        op.rename_table(new, old)


def _replace_value(table: str, column: str, old: str, new: str) -> None:
    rows = sa.table(table, sa.column(column, sa.String))
    op.execute(rows.update().where(rows.c[column] == old).values({column: new}))


def _rename_keys(table: str, column: str, keys: Mapping[str, str]) -> None:
    """One row at a time: SQLite and PostgreSQL have no common function for it."""
    rows = sa.table(table, sa.column("id", sa.Integer), sa.column(column, sa.JSON))
    connection = op.get_bind()
    for number, value in connection.execute(sa.select(rows.c.id, rows.c[column])).all():
        found = json.loads(value) if isinstance(value, str) else value
        if isinstance(found, dict) and keys.keys() & found.keys():
            renamed = {keys.get(key, key): item for key, item in found.items()}
            connection.execute(rows.update().where(rows.c.id == number).values({column: renamed}))
