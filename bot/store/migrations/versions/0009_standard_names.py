"""Renames tables, columns and stored words to the names in the code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Pairs = Sequence[tuple[str, str]]

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
#: Kinds of jobs, also used as audit actions
_JOB_KINDS = {
    "filing": "issue_filing",
    "localise": "localize",
    "mirrors": "mirror_deletion",
    "press": "check_run_action",
    "pull": "pull_evaluation",
    "since": "first_bad_release",
}
_KIND_COLUMNS = (("audit_events", "action"), ("jobs", "kind"))
#: (table, column, old value, new value)
_VALUES = (
    *((table, column, old, new) for table, column in _KIND_COLUMNS for old, new in _JOB_KINDS.items()),
    ("effects", "state", "intended", "pending"),
    ("findings", "classification", "unjudged", "inconclusive"),
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
#: (new table, JSON column): texts that hold outcomes, options, profiles and facts of localizations
_DOCUMENTS = (
    ("audit_events", "evidence"),
    ("bugs", "facts"),
    ("campaigns", "config"),
    ("campaigns", "overrides"),
    ("campaigns", "plan"),
    ("jobs", "arguments"),
    ("jobs", "result"),
    ("outcomes", "body"),
    ("reductions", "body"),
    ("repeats", "body"),
)
#: Old → new text within a JSON document. A quote within a JSON string is escaped, so a key or a whole string
#: is never mistaken for a part of another string.
_TEXTS = (
    ('"rungs":', '"ablation_runs":'),
    ('"rung":', '"torch_backend":'),
    ('"rung=', '"torch_backend='),
    (" rung=", " torch_backend="),
    ('"unrefereed"', '"without-float64"'),
    ("profile=unrefereed", "profile=without-float64"),
    ('"what": "ladder"', '"what": "ablation"'),
    ('"what": "parts"', '"what": "passes"'),
    ('"what": "raising"', '"what": "last_pass"'),
)
#: Tables whose column `configuration` holds options and the profile as text, and what changes there
_CONFIGURED = ("bugs", "outcomes", "reductions")
_CONFIGURATIONS = (("rung=", "torch_backend="), ("profile=unrefereed", "profile=without-float64"))


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
    # Private until GitHub was asked.
    op.execute(sa.text("UPDATE targets SET private = :yes WHERE reconciled_at IS NULL").bindparams(yes=True))
    for table, column, old, new in _VALUES:
        _replace_value(table, column, old, new)
    for table, column, keys in _KEYS:
        _rename_keys(table, column, keys)
    _replace_texts(_TEXTS, _CONFIGURATIONS)


def downgrade() -> None:
    """Reverts in opposite order."""
    _replace_texts(_swap(_TEXTS), _swap(_CONFIGURATIONS))
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


def _replace_texts(documents: Pairs, configurations: Pairs) -> None:
    """Replaces texts in the rows that hold them."""
    for table, column in _DOCUMENTS:
        for old, new in documents:
            _replace_text(table, column, old, new)
    for table in _CONFIGURED:
        for old, new in configurations:
            _replace_text(table, "configuration", old, new)


def _replace_text(table: str, column: str, old: str, new: str) -> None:
    # PostgreSQL has no text functions for JSON, and SQLite would take a cast to JSON for one to a number.
    typed = column != "configuration" and op.get_bind().dialect.name == "postgresql"
    text = f"CAST({column} AS TEXT)" if typed else column
    replaced = f"REPLACE({text}, :old, :new)"
    changed = f"CAST({replaced} AS JSON)" if typed else replaced
    statement = f"UPDATE {table} SET {column} = {changed} WHERE {text} LIKE :some ESCAPE '!'"  # noqa: S608
    some = f"%{old.replace('_', '!_')}%"
    op.get_bind().execute(sa.text(statement), {"old": old, "new": new, "some": some})


def _swap(pairs: Pairs) -> Pairs:
    return [(new, old) for old, new in pairs]


def _rename_keys(table: str, column: str, keys: Mapping[str, str]) -> None:
    """Updates one row at a time: SQLite and PostgreSQL have no common function for it."""
    rows = sa.table(table, sa.column("id", sa.Integer), sa.column(column, sa.JSON))
    connection = op.get_bind()
    for number, value in connection.execute(sa.select(rows.c.id, rows.c[column])).all():
        found = json.loads(value) if isinstance(value, str) else value
        if isinstance(found, dict) and keys.keys() & found.keys():
            renamed = {keys.get(key, key): item for key, item in found.items()}
            connection.execute(rows.update().where(rows.c.id == number).values({column: renamed}))
