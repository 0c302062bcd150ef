"""Observes a real service: its rows, outbox and processes; also a small corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bot import demo
from bot.campaigns.plan.catalog import catalog_path
from bot.store import Database, progress
from bot.store.progress import CampaignProgress
from fuzzing.cases import Corpus

SOURCE = "onnx-node-tests"
BASE, HEAD = "2024.0.0", "2026.4.1"  # the demo's releases
#: Regressions between them: two bugs of two cases each.
REGRESSED = {
    "test_affine_grid_2d_expanded",
    "test_affine_grid_2d_align_corners_expanded",
    "test_affine_grid_3d_expanded",
    "test_affine_grid_3d_align_corners_expanded",
}
#: Longer than any wait on a slow machine.
TIMEOUT_S = 300.0
POLL_S = 0.005

T = TypeVar("T")


def wait_for(look: Callable[[], T], what: str, poll_s: float = POLL_S, timeout_s: float = TIMEOUT_S) -> T:
    """The first true value of `look`; fails after the timeout."""
    until = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < until, f"waited {timeout_s:g} s for {what}"
        time.sleep(poll_s)
    return found


@contextmanager
def rows(data_dir: Path) -> Iterator[Database]:
    """Opens the service's database."""
    database = Database(f"sqlite:///{data_dir}/assay.db")
    try:
        yield database
    finally:
        database.close()


def seen(database: Database, delivery: str) -> CampaignProgress | None:
    """Progress of the delivery's campaign."""
    with database.reading() as session:
        return progress.of_delivery(session, delivery)


def ended(database: Database, delivery: str) -> CampaignProgress | None:
    """The delivery's campaign once it and its effects have ended."""
    found = seen(database, delivery)
    return found if found and found.state.ended and not found.unsent else None


def outbox(data_dir: Path) -> dict[str, str]:
    """The files of dry-run effects, by name."""
    folder = data_dir / "outbox" / demo.TARGET
    return {path.name: path.read_text() for path in sorted(folder.glob("*"))}


def processes(temporary: Path) -> dict[int, str]:
    """Processes whose temporary folder is at or below this one: id → command line."""
    mark = b"TMPDIR=" + os.fsencode(temporary)
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                if any(one == mark or one.startswith(mark + b"/") for one in variables):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = words.decode(errors="replace")
            except OSError:
                continue  # it has ended, or belongs to another user
    return found


def migrate(corpus: Path) -> dict[str, str]:
    """Migrates the whole source into a corpus; test → case, in the source's order."""
    command = [sys.executable, "-m", "fuzzing.migrate", SOURCE, "--corpus", str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    events = map(json.loads, done.stdout.splitlines())
    return {event["test"]: event["id"] for event in events if event["event"] == "case"}


def write_catalogue(library: Path, data_dir: Path, ids: Iterable[str]) -> None:
    """Writes a catalog of these cases into a data folder, and copies the cases from the corpus `library`."""
    corpus = data_dir / "corpus"
    chosen = list(ids)
    for case_id in chosen:
        there = Corpus(corpus).folder(case_id)
        if not there.exists():
            shutil.copytree(Corpus(library).folder(case_id), there)
    catalog = catalog_path(corpus, SOURCE)
    catalog.parent.mkdir(parents=True, exist_ok=True)
    lines = [*({"id": case_id} for case_id in chosen), {"library": "onnx", "skipped": {}}]
    catalog.write_text("".join(json.dumps(line) + "\n" for line in lines))
