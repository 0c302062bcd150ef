"""Pruning of a corpus: removes the cases that add no coverage and that nothing refers to.

The data plane decides (`fuzzing.coverage.representatives`); here are references, locks and removal. Catalogs
lose the cases first, then their folders go, each by a rename. So a campaign never plans a case that is
missing, and a removal that was killed is completed by the next one, which decides the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from bot.campaigns.plan.case_source import short_id
from bot.data_lock import CORPUS_LOCK, DataLock
from bot.errors import InfrastructureError, UsageError
from bot.runners import run_tool
from bot.settings import Settings
from bot.store import Database
from bot.store.case_references import referred_cases
from bot.store.database import missing_file
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.case_cache import PACK_FOLDER
from fuzzing.execute.reference_runner import REFERENCES_FOLDER
from fuzzing.file_trees import discard_tree

_ID_CHARACTERS = 64


@dataclass(frozen=True)
class Decisions:
    """What a pruning keeps and removes.

    cases     of the corpus
    kept      reason → cases that stay for it; see `fuzzing.coverage.representatives`
    classes   kind of coverage class → distinct ones that the corpus shows
    removed   ids of the other cases, ascending
    """

    cases: int
    kept: dict[str, int]
    classes: dict[str, int]
    removed: list[str]


@contextmanager
def locked_data(settings: Settings) -> Iterator[None]:
    """Keeps services and runs from the data folder; raises InfrastructureError with the one that is there."""
    runs = settings.data_dir / "runs"
    names = {*backends.compilers(), *(file.stem for file in runs.glob("*.lock"))}
    with ExitStack() as stack:
        locks = [DataLock(runs, name, f"`assay run --backend {name}`") for name in sorted(names)]
        for lock in (DataLock(settings.data_dir), DataLock(settings.data_dir, CORPUS_LOCK), *locks):
            lock.acquire()
            stack.callback(lock.release)
        yield


def write_references(settings: Settings, path: Path) -> None:
    """Writes the ids of cases that the service's database and those of `assay run` refer to, one a line."""
    urls = [(f"sqlite:///{file}", False) for file in sorted((settings.data_dir / "runs").glob("*.db"))]
    if missing_file(settings.database_url) is None:
        urls.append((settings.database_url, True))
    with open(path, "w", encoding="ascii") as file:
        for url, plans in urls:
            _write_references(url, plans, file)


def _write_references(url: str, plans: bool, file: IO[str]) -> None:
    database = Database(url)
    try:
        if not database.is_migrated():
            raise UsageError(
                f"the database {database.url.render_as_string()} was made by another version of Assay; "
                "migrate it with `assay db migrate`, or run `assay run` once"
            )
        with database.reading() as session:
            file.writelines(f"{case_id}\n" for case_id in referred_cases(session, plans=plans))
    finally:
        database.close()


def decide(
    corpus: Path, keep: Path, on_progress: Callable[[dict[str, Any]], None], listed: IO[str] | None = None
) -> Decisions:
    """Which cases of a corpus stay; changes nothing.

    keep    file of ids that stay
    listed  gets a line of JSON for each case: `case`, `keep`, `why`
    """
    removed: list[str] = []
    ends: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "case":
            if not event["keep"]:
                removed.append(event["id"])
            if listed is not None:
                line = {"case": event["id"], "keep": event["keep"], "why": event.get("why", "")}
                listed.write(json.dumps(line) + "\n")
        elif kind == "progress":
            on_progress(event)
        elif kind == "end":
            ends.append(event)

    run_tool("fuzzing.coverage.representatives", [str(corpus.absolute()), "--keep", str(keep)], take)
    if len(ends) != 1:
        raise InfrastructureError("the measurement of coverage stopped early; see its log above")
    return Decisions(ends[0]["cases"], ends[0]["kept"], ends[0]["classes"], removed)


def remove(corpus: Corpus, case_ids: Collection[str]) -> int:
    """Removes cases from catalogs, corpus and caches; returns how many folders there were.

    Nothing else may use the corpus meanwhile. May be killed at any time, and repeated.
    """
    if not case_ids:
        return 0
    gone = {short_id(case_id) for case_id in case_ids}
    for catalog in sorted((corpus.root / "catalogs").glob("*")):
        if catalog.suffix in (".jsonl", ".partial"):
            _forget(catalog, gone)
    removed = sum(map(corpus.remove, case_ids))
    discard_tree(corpus.root / PACK_FOLDER)  # is made again from the cases that are left
    for folder in (corpus.root / REFERENCES_FOLDER).glob("*"):
        _remove_references(folder, case_ids)
    corpus.sweep()
    return removed


def _forget(catalog: Path, gone: Collection[bytes]) -> None:
    """Rewrites a catalog without the lines of these cases, atomically."""
    part = catalog.with_name(f".{catalog.name}.{os.getpid()}")
    try:
        with open(catalog, encoding="utf-8") as lines, open(part, "w", encoding="utf-8") as file:
            file.writelines(line for line in lines if not _is_of(line, gone))
            file.flush()
            os.fsync(file.fileno())
        part.replace(catalog)
    finally:
        part.unlink(missing_ok=True)


def _is_of(line: str, case_ids: Collection[bytes]) -> bool:
    content = json.loads(line)
    return "id" in content and short_id(content["id"]) in case_ids


def _remove_references(folder: Path, case_ids: Collection[str]) -> None:
    """Removes the reference outputs of cases, a shelf at a time."""
    for shelf, ids in groupby(sorted(case_ids), key=lambda case_id: case_id[:2]):
        gone = set(ids)
        for path in (folder / shelf).glob("*.json"):
            if path.name[:_ID_CHARACTERS] in gone:
                path.unlink(missing_ok=True)
