"""Lives that are cut short: where they are killed, how many it takes, and what they leave in the database.

A program that kills prints a line of JSON for each life and death (`print_result`); its test reads them
(`run_killing_program`) and compares what is left with what a life left that nobody disturbed.
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

#: Columns that differ between lives which did the same: who works on what, how often it took, what it cost;
#: and numbers that nothing refers to, as PostgreSQL gives none again that a killed transaction had drawn.
VOLATILE_COLUMNS: Mapping[str, frozenset[str]] = {
    "audit_events": frozenset({"id"}),
    "campaigns": frozenset({"owner", "lease_until", "attempts", "clock", "work"}),
    "deliveries": frozenset({"attempts"}),
    "periodic_tasks": frozenset({"owner", "lease_until"}),
    "effects": frozenset({"attempts", "not_before"}),
    "jobs": frozenset({"id", "owner", "lease_until", "attempts"}),
    "reductions": frozenset({"runs", "seconds"}),
    "rate_usage": frozenset({"id"}),
}
#: What it costs to run a case.
COST = ("durations", "peak_bytes")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)?")
ROOT = Path(__file__).parents[2]


@dataclass
class Killer:
    """Kills this process before or after its `number`-th commit, or before its `number`-th run of a case.

    moment      never, before commit, after commit, before run
    every_run  not only the first
    """

    moment: str = "never"
    number: int = 0
    every_run: bool = False
    seen: int = 0

    @property
    def name(self) -> str:
        """When it kills, in words."""
        if self.moment == "never":
            return self.moment
        return f"{self.moment} {self.number}{' always' * self.every_run}"

    def tick(self, *_: Any) -> None:
        """One more such moment; the last thing this process does, if it is the one."""
        self.seen += 1
        if self.seen == self.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, database: Database, before_run: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Has itself called at its moments; `before_run` takes what is to be called before each run."""
        if self.moment == "before commit":
            event.listen(database.engine, "commit", self.tick)  # everything flushed, nothing committed
        elif self.moment == "after commit":
            event.listen(Session, "after_commit", self.tick)
        elif self.moment == "before run":
            assert before_run is not None
            before_run(self.tick)


def run_until_complete(run_once: Callable[[Killer], None], killer: Killer, most: int) -> int:
    """One life after another, each a fork of this process, until one ends by itself; how many it took.

    Raises RuntimeError: a life failed, or `most` of them were cut short.
    """
    gc.collect()
    gc.freeze()  # or each child's collector would copy every page that it looks at
    for lives in range(1, most + 1):
        child = os.fork()
        if child == 0:
            try:
                run_once(killer if lives == 1 or killer.every_run else Killer())
            except BaseException:  # noqa: BLE001 - whatever it was, this process must never go on as its parent
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
    """Makes all tables, and leaves no connection that a fork would share."""
    database = Database(url)
    Base.metadata.create_all(database.engine)
    database.close()


def rows(url: str) -> Rows:
    """Every row of every table in the order of their keys, fit for comparison.

    Left out is what PASSING names; a time counts as set or not set.
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
    """Prints what became of one death."""
    print(json.dumps({"killed": killer.name, "lives": lives, "rows": left}), flush=True)


def silence_logs() -> None:
    """Has this program log nothing but errors, and not to where it tells."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(40),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def run_killing_program(module: str, *arguments: str) -> list[dict[str, Any]]:
    """Runs a program that kills, and returns what it told; fails if it does."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,  # a loaded machine must not fail a proof
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
    """The value with TIME for every time in it, bytes as text."""
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
    """What a reduction told, but for what it cost, and for which of its runs were made before a kill."""
    kept = {name: value for name, value in body.items() if name not in ("seconds", "runs", "replayed")}
    if "outcome" in body:
        kept["outcome"] = {name: value for name, value in body["outcome"].items() if name not in COST}
        kept["tries"] = body["runs"] + body["replayed"]
    return kept
