"""Forgetting a repository: its files, then its rows; what stays is the audit.

Files go first, so that a process that dies half-way leaves the rows that say what is still to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import pydantic_core
import structlog

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
    cases      of the corpus, which nothing else named
    mirror     whether there was a git mirror, under any name it had
    """

    rows: dict[str, int]
    campaigns: int
    cases: int
    mirror: bool


def delete_target_data(
    database: Database,
    data_dir: Path,
    target: str,
    why: str,
    at: datetime,
    *,
    actor: str = audit.ASSAY,
    heartbeat: Callable[[], None] = lambda: None,
    removed_before: datetime | None = None,
) -> DeletedData:
    """Deletes whatever belongs to a target alone. May be repeated after a crash.

    removed_before   it is forgotten only if it was lost before then, and does not come back meanwhile

    Raises InfrastructureError: a file cannot be deleted; nothing is lost then but what was. RefusalError: it
    is not lost so long any more; its rows stay.
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
    artifacts = [data_dir / "artifacts" / str(campaign) for campaign in owned.campaigns]
    delete([*artifacts, *_case_folders(data_dir / "corpus", cases)])
    there = _delete_mirrors(data_dir, known_names)
    delete(data_dir / "outbox" / name for name in free)
    heartbeat()
    _redact_deliveries(database, target, github_id, heartbeat)
    with database.transaction() as session:
        _require_removed(targets.lock(session, target), removed_before)
        rows = target_deletion.delete_target(session, target, cases)
        told = DeletedData(rows, len(owned.campaigns), len(cases), there)
        audit.record(session, target, "forgotten", "target", why, at, actor=actor, evidence=asdict(told))
    delete(artifacts)  # a step that was writing them has noticed by now that its campaign is gone
    _delete_mirrors(data_dir, known_names)  # whoever waited for its lock has made it anew
    log.info("target.deleted", target=target, **asdict(told))
    return told


def _require_removed(row: Target | None, before: datetime | None) -> None:
    if before is None or row is None:
        return
    if row.removed_at is None or row.removed_at >= before:
        raise RefusalError(f"{row.name} is {row.state} by now")


def _delete_mirrors(data_dir: Path, known_names: Iterable[str]) -> bool:
    """Deletes the git mirrors under all names the target had; whether there was one.

    Under an earlier name another repository's may lie by now, on top of what this one left there: that one
    fetches what it needs once more.
    """
    gone = [delete_mirror(data_dir / "git", name) for name in known_names]
    return any(gone)


def _find_uncataloged(corpus: Path, cases: frozenset[str]) -> frozenset[str]:
    """Those of the cases that no catalog lists: what a source gave, other repositories will run again."""
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
    """Takes away the payloads of deliveries about the repository."""
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
                inbox.clear_payloads(session, about, "its repository was forgotten")


def _is_about(payload: bytes, target: str, github_id: int | None) -> bool:
    body = pydantic_core.from_json(payload)
    repository = body.get("repository") if isinstance(body, dict) else None
    if not isinstance(repository, dict):
        return False
    name = str(repository.get("full_name", ""))
    return name.lower() == target.lower() or (github_id is not None and repository.get("id") == github_id)
