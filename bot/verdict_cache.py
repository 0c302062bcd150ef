"""The verdicts of `assay run`, kept between runs: one database per backend in the data folder.

    DATA/runs/onnxruntime.db      verdicts, by case, toolchain, device and configuration
    DATA/runs/onnxruntime.digest  digest of Assay's own code and the reference libraries
    DATA/runs/onnxruntime.lock    the process that uses it

The digest of the compiler's files is in the key (`bot.toolchains.existing`); a change of our own oracles,
backends or workers clears the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import fuzzing
from bot.data_lock import DataLock
from bot.store import Database, now
from bot.store.case_history import CaseHistory, past
from bot.store.cleanup import prune
from fuzzing import backends

#: Parts of `fuzzing` that affect which cases exist, not their verdicts.
_NOT_VERDICT_CODE = ("migrate", "generate", "mutate", "coverage", "prioritize")
#: Distributions of our own interpreter that compute references.
_LIBRARIES = ("numpy", "onnx")


@contextmanager
def open_verdict_cache(data_dir: Path, backend: str) -> Iterator[Database]:
    """Opens the database of a backend's runs, for this process alone.

    Raises InfrastructureError with the process that uses it.
    """
    folder, name = data_dir / "runs", backends.get(backend).name
    lock = DataLock(folder, name, f"`assay run --backend {name}`")
    lock.acquire()
    try:
        _discard_stale(folder, name, verdict_digest(backend))
        with open_database(folder / f"{name}.db") as database:
            with database.transaction() as session:
                prune(session)
            yield database
    finally:
        lock.release()


def read_past_verdicts(data_dir: Path, backend: str) -> list[CaseHistory]:
    """The history of earlier runs of a backend, by case; [] if there is none or Assay has changed since.

    May be read while a run is active.
    """
    folder, name = data_dir / "runs", backends.get(backend).name
    path = folder / f"{name}.db"
    if not path.exists() or _is_stale(folder, name, verdict_digest(backend)):
        return []
    database = Database(f"sqlite:///{path}")
    try:
        if not database.is_migrated():
            return []
        with database.reading() as session:
            return list(past(session, name, name, now()))
    finally:
        database.close()


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """The database in a file, its tables up to date."""
    database = Database(f"sqlite:///{path}")
    try:
        database.migrate()
        yield database
    finally:
        database.close()


def verdict_digest(backend: str) -> str:
    """64 hex digits that change with our code that affects verdicts."""
    digest = hashlib.sha256()
    for library in _LIBRARIES:
        digest.update(f"{library}=={version(library)}\0".encode())
    root = Path(next(iter(fuzzing.__path__)))
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NOT_VERDICT_CODE:
            digest.update(path.read_bytes())
    if backend.endswith(".py"):  # a backend of another package
        digest.update(Path(backend).read_bytes())
    return digest.hexdigest()


def _discard_stale(folder: Path, name: str, digest: str) -> None:
    if _is_stale(folder, name, digest):
        for ending in (".db", ".db-wal", ".db-shm"):
            (folder / f"{name}{ending}").unlink(missing_ok=True)
    (folder / f"{name}.digest").write_text(digest, encoding="ascii")


def _is_stale(folder: Path, name: str, digest: str) -> bool:
    mark = folder / f"{name}.digest"
    return not mark.exists() or mark.read_text(encoding="ascii") != digest
