"""Kills processes at chosen points, restarts them, and compares the final database.

A killing program prints a line of JSON for each kill (`print_result`); its test reads them
(`run_killing_program`) and compares the rows with those of an undisturbed run.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from bot.store import Database
from bot.store.models import Base

Rows = dict[str, list[dict[str, Any]]]

#: Columns that differ between equivalent runs: owners, attempts, costs, and ids that nothing refers to, since
#: PostgreSQL does not reuse those of a killed transaction.
VOLATILE_COLUMNS: Mapping[str, frozenset[str]] = {
    "audit_events": frozenset({"id"}),
    "campaigns": frozenset({"owner", "lease_until", "attempts", "clock", "costs"}),
    "deliveries": frozenset({"attempts"}),
    "periodic_tasks": frozenset({"owner", "lease_until"}),
    "effects": frozenset({"attempts", "not_before"}),
    "jobs": frozenset({"id", "owner", "lease_until", "attempts"}),
    "reductions": frozenset({"runs", "seconds"}),
    "rate_usage": frozenset({"id"}),
}
#: Keys of an outcome about costs.
COST = ("durations", "peak_bytes")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)?")
ROOT = Path(__file__).parents[2]


@dataclass
class Killer:
    """Kills this process before or after its `number`-th commit, or before its `number`-th run of a case.

    moment      never, before commit, after commit, before run
    every_run   not only in the first process
    """

    moment: str = "never"
    number: int = 0
    every_run: bool = False
    seen: int = 0

    @property
    def name(self) -> str:
        """Where it kills, as text."""
        if self.moment == "never":
            return self.moment
        return f"{self.moment} {self.number}{' always' * self.every_run}"

    def tick(self, *_: Any) -> None:
        """Counts one moment; kills the process at the chosen one."""
        self.seen += 1
        if self.seen == self.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, database: Database, before_run: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Installs the hooks; `before_run` registers a function to call before each run."""
        if self.moment == "before commit":
            event.listen(database.engine, "commit", self.tick)  # everything flushed, nothing committed
        elif self.moment == "after commit":
            event.listen(Session, "after_commit", self.tick)
        elif self.moment == "before run":
            assert before_run is not None
            before_run(self.tick)


def run_until_complete(run_once: Callable[[Killer], None], killer: Killer, most: int) -> int:
    """Forks one process after another until one ends by itself; returns how many.

    Raises RuntimeError if a process failed, or `most` of them were killed.
    """
    gc.collect()
    gc.freeze()  # otherwise each child's collector copies every page it visits
    for lives in range(1, most + 1):
        child = os.fork()
        if child == 0:
            try:
                run_once(killer if lives == 1 or killer.every_run else Killer())
            except BaseException:  # noqa: BLE001 - the child must never continue as its parent
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status) != 0:
                raise RuntimeError(f"{killer.name}: life {lives} failed; its traceback is above")
            return lives
    raise RuntimeError(f"{killer.name}: not done after {most} lives")


def make_tables(url: str) -> None:
    """Creates all tables, and closes connections, which forks must not share."""
    database = Database(url)
    Base.metadata.create_all(database.engine)
    database.close()


def rows(url: str) -> Rows:
    """Every row of every table by key, for comparison.

    Omits VOLATILE_COLUMNS; a time is either set or not set.
    """
    database = Database(url)
    with database.reading() as session:
        found = {
            table.name: [
                _comparable_row(table.name, row._asdict())
                for row in session.execute(select(table).order_by(*table.primary_key))
            ]
            for table in Base.metadata.sorted_tables
        }
    database.close()
    return found


def print_result(killer: Killer, lives: int, left: Rows) -> None:
    """Prints the result of one kill."""
    print(json.dumps({"killed": killer.name, "lives": lives, "rows": left}), flush=True)


def silence_logs() -> None:
    """Limits logging to errors, on stderr."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(40),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def run_killing_program(module: str, *arguments: str) -> list[dict[str, Any]]:
    """Runs a killing program and returns its results; fails if it does."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,  # loaded machines are slow
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _comparable_row(table: str, row: dict[str, Any]) -> dict[str, Any]:
    left_out = VOLATILE_COLUMNS.get(table, frozenset())
    kept = {name: _mask_times(value) for name, value in row.items() if name not in left_out}
    if table in ("outcomes", "repeats"):
        kept["body"] = {name: value for name, value in kept["body"].items() if name not in COST}
    elif table == "reductions":
        kept["body"] = _comparable_reduction(kept["body"])
    return kept


def _mask_times(value: Any) -> Any:
    """The value with TIME for every time, and bytes as text."""
    if isinstance(value, datetime):
        return "TIME"
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return _TIME.sub("TIME", value)
    if isinstance(value, dict):
        return {name: _mask_times(inner) for name, inner in value.items()}
    return [_mask_times(inner) for inner in value] if isinstance(value, list) else value


def _comparable_reduction(body: dict[str, Any]) -> dict[str, Any]:
    """A reduction's result without its costs and the runs made before a kill."""
    kept = {name: value for name, value in body.items() if name not in ("seconds", "runs", "replayed")}
    if "outcome" in body:
        kept["outcome"] = {name: value for name, value in body["outcome"].items() if name not in COST}
        kept["tries"] = body["runs"] + body["replayed"]
    return kept
