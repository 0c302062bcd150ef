"""Migrations: they make the models' tables, there and back, and several at once do not collide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text

from bot.store import Database, outcomes, schema
from bot.store.models import Base, TargetName, reference_column
from bot.store.outcomes import CacheKey
from bot.store.schema import migrations
from fuzzing.outcomes import Outcome


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/assay.db")


def test_they_make_exactly_the_models_tables(database: Database) -> None:
    assert not database.is_migrated()
    database.migrate()
    assert database.is_migrated()
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    database.close()


def parts(script: str) -> list[list[str]]:
    """The parts of each statement, sorted: Alembic changes the order of a table's constraints each time."""
    return [sorted(line.strip().rstrip(",") for line in one.splitlines()) for one in script.split(";\n\n")]


@pytest.mark.sqlite
def test_a_new_file_has_the_tables_that_the_migrations_make(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ASSAY_GOLDEN=write` writes the script after a new migration."""
    migrated = Database(f"sqlite:///{tmp_path}/migrated.db")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_create_tables", lambda _engine: False)
        migrated.migrate()
    with migrated.engine.connect() as connection:
        made = schema.script(connection)
    kept = schema.SCRIPT.read_text(encoding="utf-8")
    if os.environ.get("ASSAY_GOLDEN") == "write" and parts(kept) != parts(made):
        schema.SCRIPT.write_text(made, encoding="utf-8")
        kept = made
    assert parts(kept) == parts(made), "ASSAY_GOLDEN=write writes it"
    monkeypatch.setattr(command, "upgrade", None)  # it is not needed
    database.migrate()
    with database.engine.connect() as connection:
        assert schema.script(connection) == kept
    migrated.close()
    database.close()


def test_each_migration_is_a_file_named_by_its_revision() -> None:
    scripts = ScriptDirectory.from_config(migrations()).walk_revisions()
    assert schema.revisions() == tuple(script.revision for script in scripts)[::-1]


@pytest.mark.sqlite
def test_tables_that_are_there_need_no_alembic(tmp_path: Path) -> None:
    program = """
import sys
from bot.store import Database
for _ in range(2):
    database = Database(sys.argv[1])
    database.migrate()
    assert database.is_migrated()
    database.close()
print("alembic" in sys.modules)
"""
    argv = [sys.executable, "-c", program, f"sqlite:///{tmp_path}/assay.db"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "False\n"


def test_again_changes_nothing(database: Database) -> None:
    database.migrate()
    database.migrate()
    assert database.is_migrated()
    database.close()


def test_there_is_a_way_back(database: Database) -> None:
    database.migrate()
    config = migrations()
    config.attributes["connection"] = database.engine
    command.downgrade(config, "base")
    assert inspect(database.engine).get_table_names() == ["alembic_version"]
    database.migrate()
    assert database.is_migrated()
    database.close()


def test_outcomes_of_old_have_the_default_configuration(database: Database) -> None:
    """0002 widens the key; what was known before stays known, there and back."""
    config = migrations()
    config.attributes["connection"] = database.engine
    command.upgrade(config, "0001")
    old = {"case_id": "c", "toolchain": "t", "backend": "b", "device": "CPU", "verdict": "pass", "body": "{}"}
    names = ", ".join([*old, "recorded_at"])
    values = ", ".join([*(f"'{value}'" for value in old.values()), "'2026-01-01'"])
    with database.engine.begin() as connection:
        connection.execute(text(f"INSERT INTO outcomes ({names}) VALUES ({values})"))
    command.upgrade(config, "0002")
    twin = text(f"INSERT INTO outcomes ({names}, configuration) VALUES ({values}, 'optimization=basic')")
    with database.engine.begin() as connection:
        assert connection.execute(text("SELECT configuration FROM outcomes")).scalars().all() == [""]
        connection.execute(twin)
    command.downgrade(config, "0001")
    with database.engine.begin() as connection:
        assert connection.execute(text("SELECT verdict FROM outcomes")).scalars().all() == ["pass"]
    database.close()


#: What an effect is called here → its kind, state and reason as they were told before 0008.
REPORTED = {
    "withdrawn": ("issue", "held", "withdrawn: it passes"),
    "withdrawn in hand": ("issue", "sending", "withdrawn: it passes"),
    "over_quota": ("issue", "held", "over quota: 2 issues in 24 hours, reports.issues_per_day is 2"),
    "checking": ("issue", "held", "being checked before it is filed"),
    "checking again": ("issue", "held", "could not be checked before it is filed: withdrawn: no network"),
    "no_issues": ("issue", "failed", "not sent: issues are disabled in octo/compiler; enable them"),
    "unwatched": ("check_run", "failed", "not sent: it was archived, and so is read-only"),
    "": ("comment", "failed", "GitHub answered 422: over quota"),
    " sent": ("issue", "sent", ""),
}


def causes(at: Database) -> dict[str, str]:
    """Why each of them stays here, once 0008 has been there and back and there again."""
    config = migrations()
    config.attributes["connection"] = at.engine
    command.upgrade(config, "0007")
    effect = text(
        "INSERT INTO effects (key, kind, target, after, urgent, mode, payload, state, reason, attempts, url, "
        "remote, revision, sent_revision, created_at) VALUES (:key, :kind, 't', '', :no, '', '{}', :state, "
        ":reason, 0, '', '', 1, 0, '2026-01-01')"
    )
    with at.engine.begin() as connection:
        for key, (kind, state, reason) in REPORTED.items():
            given = {"key": key, "kind": kind, "state": state, "reason": reason, "no": False}
            connection.execute(effect, given)
        pull = (
            "INSERT INTO pulls (target, number, head, base, base_ref, head_repository, author, association, "
            "draft, state, approved_head, approved_by, updated_at) VALUES ('t', 1, 'h', 'b', 'main', '', "
            "'a', 'NONE', :no, 'open', '', '', '2026-01-01')"
        )
        connection.execute(text(pull), {"no": False})
    for revision in ("0008", "0007", "0008"):
        (command.upgrade if revision == "0008" else command.downgrade)(config, revision)
    with at.engine.connect() as connection:
        assert connection.execute(text("SELECT stopped_head FROM pulls")).scalars().all() == [""]
        return {row.key: row.cause for row in connection.execute(text("SELECT key, cause FROM effects"))}


def as_told(found: dict[str, str]) -> bool:
    return found == {key: key.partition(" ")[0] for key in REPORTED}


def test_why_effects_stay_here_is_read_once_from_their_reasons(database: Database) -> None:
    assert as_told(causes(database))
    database.close()


def test_the_same_on_postgresql(postgresql: str) -> None:
    database = Database(postgresql)
    assert as_told(causes(database))
    database.close()


#: A stored outcome before 0009, which 0009 must neither lose nor read as text of a compiler.
BEFORE: dict[str, Any] = {
    "case": "c",
    "backend": "inductor",
    "toolchain": "t",
    "device": "CPU",
    "verdict": "crash",
    "phase": "compile",
    "summary": 'a compiler says "rungs": [] and "ladder"',
    "durations": {"compile": 1.5},
    "evidence": {
        **dict.fromkeys(("error", "message", "signal", "native", "log"), ""),
        "traceback": [],
        "mismatches": [],
        "rungs": [["dynamic=on rung=eager", "pass"], ["rung=inductor", "crash"]],
        "component": "inductor",
    },
    "peak_bytes": 0,
    "configuration": "dynamic=on rung=inductor profile=unrefereed",
}


def stored_outcomes(at: Database) -> tuple[Outcome, str]:
    """The outcome after 0009, by its cache key as the code names it; and its document back at 0008."""
    config = migrations()
    config.attributes["connection"] = at.engine
    command.upgrade(config, "0008")
    columns = {name: BEFORE[name] for name in ("toolchain", "backend", "device", "verdict", "configuration")}
    row = {**columns, "case_id": "c", "body": json.dumps(BEFORE), "recorded_at": "2026-01-01"}
    insert = f"INSERT INTO outcomes ({', '.join(row)}) VALUES (:{', :'.join(row)})"
    with at.engine.begin() as connection:
        connection.execute(text(insert), row)
    command.upgrade(config, "0009")
    key = CacheKey("t", "inductor", "CPU", "dynamic=on torch_backend=inductor profile=without-float64")
    with at.reading() as session:
        found = outcomes.get(session, "c", key)
    assert found is not None
    command.downgrade(config, "0008")
    with at.engine.connect() as connection:
        before = connection.execute(text("SELECT CAST(body AS TEXT), configuration FROM outcomes")).one()
    assert before[1] == BEFORE["configuration"]
    return found, before[0]


def assert_outcome_kept(found: Outcome, before: str) -> None:
    assert found.summary == BEFORE["summary"]
    assert found.evidence.component == "inductor"
    assert found.evidence.ablation_runs == (
        ("dynamic=on torch_backend=eager", "pass"),
        ("torch_backend=inductor", "crash"),
    )
    assert json.loads(before) == BEFORE


def test_stored_outcomes_stay_readable(database: Database) -> None:
    assert_outcome_kept(*stored_outcomes(database))
    database.close()


def test_stored_outcomes_stay_readable_on_postgresql(postgresql: str) -> None:
    database = Database(postgresql)
    assert_outcome_kept(*stored_outcomes(database))
    database.close()


def test_facts_of_localizations_name_methods_as_the_code_does(database: Database) -> None:
    """0009 renames them row by row, there and back."""
    config = migrations()
    config.attributes["connection"] = database.engine
    database.migrate("0009")
    defaults = {datetime: "2026-01-01", int: 0, str: ""}
    given = {
        column["name"]: defaults.get(column["type"].python_type, "{}")
        for column in inspect(database.engine).get_columns("bugs")
        if not column["nullable"] and column["name"] not in ("id", "facts")
    }
    names, values = ", ".join(given), ", ".join(f":{name}" for name in given)
    stored = '{"localization": {"facts": [{"what": "passes"}, {"what": "stage"}, {"what": "last_pass"}]}}'
    with database.engine.begin() as connection:
        insert = text(f"INSERT INTO bugs ({names}, facts) VALUES ({values}, :stored)")
        connection.execute(insert, given | {"stored": stored})
    for revision, key, methods in (
        ("0008", "localisation", ["parts", "stage", "raising"]),
        ("0009", "localization", ["passes", "stage", "last_pass"]),
    ):
        (command.upgrade if revision == "0009" else command.downgrade)(config, revision)
        with database.engine.connect() as connection:
            facts = json.loads(connection.execute(text("SELECT CAST(facts AS TEXT) FROM bugs")).scalar_one())
        assert [fact["what"] for fact in facts[key]["facts"]] == methods
    database.close()


def columns_of_targets(at: Database) -> dict[str, str]:
    """The column of each table that has, or refers to, a target's name at 0012."""
    found = {}
    for table in inspect(at.engine).get_table_names():
        names = {column["name"] for column in inspect(at.engine).get_columns(table)}
        if "target" in names or table in ("kill_switches", "targets"):
            found[table] = "target" if "target" in names else "name"
    return found


def insert_row(at: Database, table: str, **given: object) -> None:
    """A row with these values; the other columns that need one get the least of their type."""
    least = {datetime: "2026-01-01", int: 0, str: "", bool: False}
    for column in inspect(at.engine).get_columns(table):
        if column["nullable"] or column["name"] in given or column["name"] == "id":
            continue
        given[column["name"]] = least.get(column["type"].python_type, "{}")
    with at.engine.begin() as connection:
        names, values = ", ".join(given), ", ".join(f":{name}" for name in given)
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), given)


def names_through_0013(at: Database) -> None:
    """Two targets in every table keep their names when these become keys, and names again."""
    at.migrate("0012")
    columns = columns_of_targets(at)
    assert len(columns) == 11
    for number, name in enumerate(("octo/b", "octo/a")):
        for table, column in columns.items():
            unique = {"targets": {"stable_name": name}, "jobs": {"key": name}, "effects": {"key": name}}
            if table == "commands":
                unique[table] = {"comment": number}  # type: ignore[dict-item]
            insert_row(at, table, **{column: name}, **unique.get(table, {}))
    at.migrate()
    with at.reading() as session:
        assert session.scalars(select(TargetName.name).order_by(TargetName.name)).all() == [
            "octo/a",
            "octo/b",
        ]
        for model in Base.metadata.sorted_tables:
            reference = reference_column(model)
            if reference is not None:
                found = session.scalars(select(reference).where(reference == "octo/b")).all()
                assert (columns.pop(model.name), found) == (reference.key, ["octo/b"])
    assert columns == {}
    at.migrate("0012")
    with at.engine.connect() as connection:
        for table, column in columns_of_targets(at).items():
            stored = connection.execute(text(f"SELECT {column} FROM {table} ORDER BY {column}"))
            assert stored.scalars().all() == ["octo/a", "octo/b"], table
    at.migrate()
    with at.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    at.close()


def test_names_of_targets_become_keys_and_names_again(database: Database) -> None:
    names_through_0013(database)


def test_names_of_targets_become_keys_on_postgresql(postgresql: str) -> None:
    names_through_0013(Database(postgresql))


START = """
import sys
from bot.store import Database, outcomes, schema
database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
database.migrate()
print(database.is_migrated())
"""


def test_first_starts_at_the_same_moment(database: Database) -> None:
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", START, str(database.url)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for starter in starters:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    ends = [starter.communicate(timeout=600) for starter in starters]
    assert [out for out, _ in ends] == ["True\n"] * 3, ends


#: (table, row at 0008, columns at 0009 with what they hold then)
RENAMED: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    (
        "audit",
        {
            "target": "t",
            "who": "ada",
            "what": "filing",
            "subject": "bug:1",
            "why": "w",
            "evidence": "{}",
            "at": "2026-01-01",
        },
        "audit_events",
        {"actor": "ada", "action": "issue_filing", "reason": "w"},
    ),
    (
        "jobs",
        {
            "key": "k",
            "kind": "since",
            "target": "t",
            "asked_by": "ada",
            "state": "done",
            "reason": "",
            "arguments": '{"turn": 2, "asked_by": "ada"}',
            "result": "{}",
            "owner": "",
            "attempts": 0,
            "created_at": "2026-01-01",
        },
        "jobs",
        {
            "kind": "first_bad_release",
            "requested_by": "ada",
            "arguments": '{"run_number": 2, "requested_by": "ada"}',
        },
    ),
    (
        "duties",
        {"name": "upkeep", "hurried": True, "memory": "{}", "owner": "", "note": ""},
        "periodic_tasks",
        {"name": "cleanup", "rerun_requested": True, "saved_state": "{}"},
    ),
    (
        "brakes",
        {"name": "all", "reason": "r", "set_at": "2026-01-01"},
        "kill_switches",
        {"name": "all", "reason": "r"},
    ),
    (
        "spending",
        {"installation": "7", "at": "2026-01-01", "creates": True},
        "rate_usage",
        {"account": "7", "creates_content": True},
    ),
    (
        "pauses",
        {"installation": "7", "until": "2026-01-01", "reason": "r"},
        "rate_limit_pauses",
        {"account": "7", "reason": "r"},
    ),
    (
        "answers",
        {"url": "u", "etag": "e", "body": "{}", "at": "2026-01-01"},
        "cached_responses",
        {"url": "u", "etag": "e"},
    ),
)


def stored(at: Database, table: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The only row of a table as it was given: PostgreSQL's driver parses documents and times."""
    with at.engine.connect() as connection:
        row = connection.execute(text(f"SELECT {', '.join(columns)} FROM {table}")).mappings().one()
    return {name: _as_given(value) for name, value in row.items()}


def _as_given(value: object) -> object:
    if isinstance(value, datetime):
        return value.date().isoformat()
    return json.dumps(value) if isinstance(value, dict) else value


def test_standard_names_keep_every_row_there_and_back(database: Database) -> None:
    config = migrations()
    config.attributes["connection"] = database.engine
    command.upgrade(config, "0008")
    with database.engine.begin() as connection:
        for table, row, _, _ in RENAMED:
            names = [f":{name}" for name in row]
            connection.execute(
                text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(names)})"), row
            )
    for _ in range(2):
        command.upgrade(config, "0009")
        for _, _, table, expected in RENAMED:
            assert stored(database, table, expected) == expected
        command.downgrade(config, "0008")
        for table, row, _, _ in RENAMED:
            assert stored(database, table, row) == row
    database.close()
