"""Deletes a target's data: its files, then its rows. The audit stays.

Files are deleted first, so after a crash the rows show what is left to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import pydantic_core
import structlog

from bot.artifacts import Artifacts
from bot.errors import RefusalError
from bot.github.mirrors import delete, delete_mirror
from bot.store import Database, audit, inbox, target_deletion, target_rename, targets
from bot.store.models import Target, TargetState
from bot.targets import target_lifecycle
from fuzzing.cases import Corpus

PAGE_SIZE = 50  # deliveries read at once; one may have 25 MB

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class DeletedData:
    """What was deleted.

    rows       by table
    campaigns  whose artifacts went with them
    cases      of the corpus that nothing else refers to
    mirror     whether there was a git mirror, under any of its names
    """

    rows: dict[str, int]
    campaigns: int
    cases: int
    mirror: bool


def delete_target_data(
    database: Database,
    data_dir: Path,
    artifacts: Artifacts,
    target: str,
    why: str,
    at: datetime,
    *,
    actor: str = audit.ASSAY,
    heartbeat: Callable[[], None] = lambda: None,
    removed_before: datetime | None = None,
) -> DeletedData:
    """Deletes all data of a target that others do not share. May be repeated after a crash.

    removed_before  deletes only a target removed before this time

    Raises InfrastructureError if a file cannot be deleted; a repetition continues. Raises RefusalError if
    the target was not removed before `removed_before`; its rows stay.
    """
    with database.transaction() as session:
        row, _ = targets.ensure(session, target)
        _require_removed(row, removed_before)
        target_lifecycle.stop_watching(session, row, TargetState.REMOVED, why, at)
        targets.stop_work(session, target, why, at)
    with database.reading() as session:
        owned = target_deletion.find_owned_data(session, target)
        known_names = target_rename.known_names(session, target)
        free = [
            name for name in known_names if name == target or targets.find_any_case(session, name) is None
        ]
        github_id = row.github_id
    heartbeat()
    cases = _find_uncataloged(data_dir / "corpus", owned.cases)
    artifacts.delete(owned.campaigns)
    delete(_case_folders(data_dir / "corpus", cases))
    there = _delete_mirrors(data_dir, known_names)
    delete(data_dir / "outbox" / name for name in free)
    heartbeat()
    _redact_deliveries(database, target, github_id, heartbeat)
    with database.transaction() as session:
        _require_removed(targets.lock(session, target), removed_before)
        rows = target_deletion.delete_target(session, target, cases)
        deleted = DeletedData(rows, len(owned.campaigns), len(cases), there)
        audit.record(session, target, "forgotten", "target", why, at, actor=actor, evidence=asdict(deleted))
    artifacts.delete(owned.campaigns)  # again: a running step may have written some
    _delete_mirrors(data_dir, known_names)  # again: a process that waited for the lock may have recreated it
    log.info("target.deleted", target=target, **asdict(deleted))
    return deleted


def _require_removed(row: Target | None, before: datetime | None) -> None:
    if before is None or row is None:
        return
    if row.removed_at is None or row.removed_at >= before:
        raise RefusalError(f"{row.name} is {row.state} now")


def _delete_mirrors(data_dir: Path, known_names: Iterable[str]) -> bool:
    """Deletes the git mirrors under all names the target had; whether there was one.

    Another repository may use an earlier name by now; it fetches what it needs again.
    """
    gone = [delete_mirror(data_dir / "git", name) for name in known_names]
    return any(gone)


def _find_uncataloged(corpus: Path, cases: frozenset[str]) -> frozenset[str]:
    """The cases that no catalog lists; other repositories may run the listed ones again."""
    folder = corpus / "catalogs"
    left = set(cases)
    for path in sorted(folder.iterdir()) if left and folder.is_dir() else ():
        with open(path, "rb") as lines:
            left.difference_update(str(pydantic_core.from_json(line).get("id")) for line in lines)
    return frozenset(left)


def _case_folders(corpus: Path, cases: Iterable[str]) -> Iterable[Path]:
    store = Corpus(corpus)
    return (store.folder(case) for case in cases)


def _redact_deliveries(
    database: Database, target: str, github_id: int | None, heartbeat: Callable[[], None]
) -> None:
    """Clears the payloads of deliveries about the repository."""
    after = ""
    while True:
        heartbeat()
        with database.reading() as session:
            page = inbox.payloads(session, after, PAGE_SIZE)
        if not page:
            return
        after = page[-1][0]
        about = [delivery for delivery, payload in page if _is_about(payload, target, github_id)]
        if about:
            with database.transaction() as session:
                inbox.clear_payloads(session, about, "its repository was deleted")


def _is_about(payload: bytes, target: str, github_id: int | None) -> bool:
    body = pydantic_core.from_json(payload)
    repository = body.get("repository") if isinstance(body, dict) else None
    if not isinstance(repository, dict):
        return False
    name = str(repository.get("full_name", ""))
    return name.lower() == target.lower() or (github_id is not None and repository.get("id") == github_id)
