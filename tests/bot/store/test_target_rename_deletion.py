"""Renames and deletions reach every table, also those that are added later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, LargeBinary, func, select
from sqlalchemy.orm import Session

from bot.errors import InternalError
from bot.store import Database, target_deletion, target_rename, targets
from bot.store.models import (
    AuditEvent,
    Base,
    Bug,
    CachedResponse,
    Campaign,
    CampaignCase,
    Finding,
    KillSwitch,
    Mute,
    Reduction,
    Target,
    TargetName,
    Toolchain,
    UtcDateTime,
    reference_column,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW, OTHER = "octo/old", "octo/new", "octo/other"
#: Tables whose rows belong to no target: the inbox, limits, duties, and what is shared by content.
SHARED = {
    "deliveries",
    "periodic_tasks",
    "installations",
    "outcomes",
    "rate_limit_pauses",
    "reductions",
    "rate_usage",
    "target_names",
    "toolchains",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    yield made
    made.close()


def value(column: Column[Any], target: str, ids: dict[str, int]) -> Any:
    """Something that fits a column; foreign keys lead to the target's own campaign and bug."""
    if column is reference_column(column.table):
        return target
    key = next(iter(column.foreign_keys), None)
    if key is not None:
        return ids.get(key.column.table.name)
    if column.name == "url":
        return f"https://api.github.com/repos/{target}/pulls"
    if isinstance(column.type, LargeBinary):
        return b""
    if isinstance(column.type, UtcDateTime):
        return NOW
    kind = getattr(column.type, "impl", column.type).python_type
    if kind is str:
        return f"{column.name} {target}"[: getattr(column.type, "length", None)]  # PostgreSQL counts letters
    return {int: ids["n"], bool: False, float: 0.0}.get(kind, {})


def fill(session: Session, target: str, number: int) -> None:
    """A row of each table that belongs to a target."""
    ids = {"campaigns": number, "bugs": number, "n": number}
    session.add(TargetName(name=target))
    session.flush()
    for table in Base.metadata.sorted_tables:
        if table.name in SHARED:
            continue
        row = {
            column.key: value(column, target, ids)
            for column in table.columns
            if not (column.nullable and column.name != "bug_id")
        }
        if table.name in ("campaigns", "bugs"):
            row["id"] = number
        if table.name in ("audit_events", "mutes", "jobs"):
            row.pop("id", None)
        if table.name == "effects":
            row["campaign_id"] = number
        session.execute(table.insert().values(**row))


def counts(session: Session, target: str) -> dict[str, int]:
    """Rows of each table that belong to a target."""
    found = {}
    for table in Base.metadata.sorted_tables:
        rows = target_deletion._target_rows(table, target)
        if table is AuditEvent.__table__:
            rows = table.c.target == target
        if rows is not None:
            found[table.name] = session.scalar(select(func.count()).select_from(table).where(rows)) or 0
    return found


def test_every_table_belongs_to_targets_or_is_shared() -> None:
    names = {table.name for table in Base.metadata.sorted_tables}
    owned = {
        table.name
        for table in Base.metadata.sorted_tables
        if target_deletion._target_rows(table, OLD) is not None
    }
    assert owned | {"audit_events"} | SHARED == names
    assert owned & SHARED == set()


def test_a_rename_takes_every_row_along(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        fill(session, OTHER, 2)
        before, other = counts(session, OLD), counts(session, OTHER)
        assert set(before.values()) == {1}
        target_rename.rename_target(session, OLD, NEW)
        assert counts(session, NEW) == before | {"cached_responses": 0}, (
            "GitHub redirects what is asked there now"
        )
        assert set(counts(session, OLD).values()) == {0}
        assert counts(session, OTHER) == other
    with database.transaction() as session:
        target_rename.rename_target(session, NEW, OLD)
        assert counts(session, OLD) == before | {"cached_responses": 0}


def test_whoever_has_the_new_name_is_parked(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        fill(session, NEW, 2)
        session.get_one(Target, NEW).github_id = 77
        target_rename.rename_target(session, OLD, NEW)
        assert counts(session, NEW)["campaigns"] == 1
        parked = session.scalars(select(Target.name).where(Target.github_id == 77)).one()
        assert parked == f"{NEW}.was-77"
        assert session.scalars(select(Campaign.id).where(Campaign.target == parked)).one() == 2


def test_only_the_case_of_a_name_can_change(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        target_rename.rename_target(session, OLD, OLD.upper())
        assert counts(session, OLD.upper())["campaigns"] == 1
        with pytest.raises(InternalError, match="to itself"):
            target_rename.rename_target(session, OLD, OLD)


def test_rows_of_both_cases_of_a_name_are_one_targets(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        session.add(Mute(target=OLD.upper(), operator="Add", until=NOW, by="ada", created_at=NOW))
        session.flush()
        target_rename.rename_target(session, OLD, OLD.upper())
        assert counts(session, OLD.upper())["mutes"] == 2
        assert session.scalars(select(TargetName.name)).all() == [OLD.upper()]


def test_a_name_that_is_only_in_the_audit_can_be_parked_again(database: Database) -> None:
    with database.transaction() as session:
        parked = []
        for _ in range(2):
            session.add(Target(name=OLD, github_id=77))
            session.flush()
            parked.append(target_rename.free_name(session, OLD))
            target_deletion.delete_target(session, parked[-1], ())
        assert parked == [f"{OLD}.was-77", f"{OLD}.was-77-2"]


def test_a_name_that_nothing_refers_to_is_unlike_every_name(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        assert session.scalars(select(Campaign.id).where(Campaign.target == NEW)).all() == []
        assert session.scalars(select(Campaign.id).where(Campaign.target != NEW)).all() == [1]
        assert session.scalars(select(Campaign.id).where(Campaign.target.in_([OLD, NEW]))).all() == [1]
        assert session.scalars(select(Campaign.id).where(Campaign.target.not_in([NEW]))).all() == [1]


def test_names_are_ordered_as_text_not_by_key(database: Database) -> None:
    with database.transaction() as session:
        for name in (OTHER, NEW):
            targets.ensure(session, name)
        assert [target.name for target in targets.of_owner(session, "Octo")] == [NEW, OTHER]


def test_names_with_signs_of_patterns_are_only_themselves(database: Database) -> None:
    with database.transaction() as session:
        for name in ("octo/a_b", "octo/axb"):
            session.add(CachedResponse(url=f"https://api/repos/{name}", etag="", body={}, at=NOW))
        session.add(Target(name="octo/a_b"))
        session.flush()
        target_rename.rename_target(session, "octo/a_b", "octo/c")
        assert session.scalars(select(CachedResponse.url)).all() == ["https://api/repos/octo/axb"]


def test_keys_call_a_target_the_same_through_renames_and_no_two_alike(database: Database) -> None:
    with database.transaction() as session:
        targets.ensure(session, OLD)
        target_rename.rename_target(session, OLD, OTHER)
        assert targets.stable_name(session, OTHER) == OLD
        targets.ensure(session, OLD)  # somebody else's by now
        target_rename.rename_target(session, OLD, f"{OTHER}-too")
        targets.ensure(session, OLD)
        names = [OTHER, f"{OTHER}-too", OLD]
        assert len({targets.stable_name(session, name) for name in names}) == len(names)
        assert targets.stable_name(session, "octo/never-seen") == "octo/never-seen"


def test_forgetting_leaves_the_audit_and_everybody_else(database: Database) -> None:
    with database.transaction() as session:
        fill(session, OLD, 1)
        fill(session, OTHER, 2)
        before, other = counts(session, OLD), counts(session, OTHER)
        gone = target_deletion.delete_target(session, OLD, ())
        assert gone == {name: 1 for name in before if name != "audit_events"}
        assert counts(session, OLD) == {name: int(name == "audit_events") for name in before}
        assert counts(session, OTHER) == other
        assert not target_deletion.has_rows(session, OLD)
        assert target_deletion.has_rows(session, OTHER)


def test_cases_that_others_name_are_not_its_own(database: Database) -> None:
    with database.transaction() as session:
        for number, target in ((1, OLD), (2, OTHER)):
            session.add(
                Campaign(id=number, target=target, head="h", trigger="push", created_at=NOW, updated_at=NOW)
            )
        session.add(Bug(target=OLD, signature="s", title="t", first_seen=NOW, last_seen=NOW, case_id="bug"))
        session.flush()
        for number, case in ((1, "mine"), (1, "ours"), (2, "ours"), (2, "theirs")):
            rank = len(session.scalars(select(CampaignCase)).all())
            session.add(CampaignCase(campaign_id=number, rank=rank, case_id=case))
            session.flush()
        session.add(
            Finding(
                campaign_id=1,
                case_id="mine",
                classification="regression",
                verdict="crash",
                signature="s",
                reduced="small",
            )
        )
        for case, reduced in (("mine", "smaller"), ("ours", "shared")):
            session.add(
                Reduction(
                    case_id=case, toolchain="t", backend="b", device="CPU", reduced=reduced, recorded_at=NOW
                )
            )
        session.flush()
        owned = target_deletion.find_owned_data(session, OLD)
        assert owned.campaigns == (1,)
        assert owned.cases == {"mine", "small", "smaller", "bug"}


def test_bugs_that_are_each_others_duplicates_go_together(database: Database) -> None:
    with database.transaction() as session:
        for number, other in ((1, None), (2, 1), (3, 2)):
            session.add(
                Bug(
                    id=number,
                    target=OLD,
                    signature=str(number),
                    title="t",
                    first_seen=NOW,
                    last_seen=NOW,
                    duplicate_of=other,
                )
            )
            session.flush()
        assert target_deletion.delete_target(session, OLD, ()) == {"bugs": 3}


def test_a_toolchain_outlives_the_target_that_was_tested_on_it(database: Database) -> None:
    with database.transaction() as session:
        session.add(
            Toolchain(
                digest="d",
                backend="b",
                provisioner="p",
                label="",
                python="",
                versions={},
                requirements=[],
                created_at=NOW,
            )
        )
        session.flush()
        session.add(
            Campaign(target=OLD, head="h", trigger="push", head_toolchain="d", created_at=NOW, updated_at=NOW)
        )
        session.add(KillSwitch(name="all", reason="", set_at=NOW))
        session.flush()
        target_deletion.delete_target(session, OLD, ())
        assert session.get(Toolchain, "d") is not None
        assert session.get(KillSwitch, "all") is not None
