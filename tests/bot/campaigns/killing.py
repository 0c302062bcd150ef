"""Runs one campaign again and again, killed with SIGKILL at every moment that matters; prints what is left.

    python -m tests.bot.campaigns.killing WORLD FOLDER

prints one JSON object a line: {"killed": "never" | "before commit 3" | ..., "lives": N, "rows": {...}}.
A life is a process of its own, forked from this one, which holds nothing but imported modules.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from bot.campaigns import shards
from bot.campaigns.engine import Engine
from bot.campaigns.intents import handle
from bot.campaigns.services import Services, Settings
from bot.store import Database
from bot.store.models import Base
from tests.bot.campaigns import standins

#: What differs between two runs of the same campaign and says nothing about it.
PASSING = {
    "created_at",
    "updated_at",
    "recorded_at",
    "attempts",
    "owner",
    "lease_until",
    "clock",
    "work",
    "sent_at",
    "seconds",
}
PASSING |= {"received_at", "first_seen", "last_seen", "at", "last_event_at", "reconciled_at", "heads"}
#: The first commits are killed at on both sides. Behind a commit and before the next there is little between.
BOTH = 9
#: Lives all cut short. Three commits begin each (the delivery, the leases, the claim), a reduction that fails
#: for reasons of the reducer's may be the fourth: what is left of seven must be progress.
ALWAYS = (("before commit", 7), ("after commit", 9), ("before commit", 13))
#: No campaign needs more lives than this; one that does makes no progress.
LIVES = 60


@dataclass(frozen=True)
class World:
    """A campaign's surroundings: its settings, its services, and a hook before each run of a case."""

    settings: Settings
    services: Services
    before_run: Callable[[Callable[[], None]], None]


def standin_world(folder: Path) -> World:
    """Stand-ins; what flakes there does so in every fresh run, so that its rows do not depend on luck."""
    standins.TESTS["Exp_flaky_at_head"] = (("pass",), ("crash", "pass"))
    standins.TESTS["Gelu_flaky_at_base"] = (("pass", "crash"), ("crash",))
    standins.write_corpus(folder / "corpus")
    runner = standins.Runner()
    reducing = standins.PlainConfig(reduction=standins.PlainReduction(cases=10))
    files = {standins.CONFIG: standins.to_bytes(reducing), standins.PIN: b"standin==2"}
    repositories = standins.Repositories({"2" * 40: files})

    def before_run(call: Callable[[], None]) -> None:
        runner.before = lambda _case, _stop: call()

    return World(
        standins.PlainSettings(folder),
        standins.services(runner=runner, repositories=repositories),
        before_run,
    )


#: The place for worlds with real collaborators: a name, and how to build one below a folder. Their outcomes
#: must not depend on luck either; durations and peak memory may be left out of the rows by PASSING_BODY.
WORLDS: dict[str, Callable[[Path], World]] = {"standins": standin_world}
PASSING_BODY = {"durations", "peak_bytes"}


@dataclass
class Killer:
    """Kills this process right before or after its `number`-th commit, or before its `number`-th run."""

    moment: str = "never"
    number: int = 0
    every_life: bool = False
    seen: int = 0

    @property
    def name(self) -> str:
        return (
            self.moment
            if self.moment == "never"
            else f"{self.moment} {self.number}{' always' * self.every_life}"
        )

    def tick(self, *_: Any) -> None:
        self.seen += 1
        if self.seen == self.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, database: Database, world: World) -> None:
        if self.moment == "before commit":
            event.listen(database.engine, "commit", self.tick)  # everything flushed, nothing committed
        elif self.moment == "after commit":
            event.listen(Session, "after_commit", self.tick)
        elif self.moment == "before run":
            world.before_run(self.tick)


def live(world: World, killer: Killer) -> None:
    """One life: the delivery is handled (again), then the engine works until nothing is due."""
    database = Database(f"sqlite:///{world.settings.data_dir}/assay.db")
    killer.arm(database, world)
    with database.transaction() as session:
        handle(session, standins.Intent())
    engine = Engine(database, world.settings, world.services)
    engine.start(steal=True)
    while engine.run_once():
        pass
    database.close()


def until_done(build: Callable[[Path], World], folder: Path, killer: Killer) -> int:
    """Lives one life after another until one ends by itself; returns how many it took."""
    folder.mkdir()
    database = Database(f"sqlite:///{folder}/assay.db")
    Base.metadata.create_all(database.engine)
    database.close()
    world = build(folder)
    for lives in range(1, LIVES + 1):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live(world, killer if lives == 1 or killer.every_life else Killer())
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status) != 0:
                raise RuntimeError(f"{killer.name}: life {lives} failed; its traceback is above")
            return lives
    raise RuntimeError(f"{killer.name}: not done after {LIVES} lives")


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, without what passes, in the order of their keys."""
    database = Database(f"sqlite:///{folder}/assay.db")
    with database.reading() as session:
        found = {
            table.name: [
                _plain(row._asdict()) for row in session.execute(select(table).order_by(*table.primary_key))
            ]
            for table in Base.metadata.sorted_tables
            if table.name != "duties"  # what is due depends on how long the lives are
        }
    database.close()
    return found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in PASSING}
    if "verdict" in row and isinstance(row.get("body"), dict):
        kept["body"] = {name: value for name, value in row["body"].items() if name not in PASSING_BODY}
    if "reduced" in row and isinstance(row.get("body"), dict):
        kept |= {"runs": None, "body": _plain_reduction(row["body"])}
    return kept


def _plain_reduction(body: dict[str, Any]) -> dict[str, Any]:
    """What a reduction told, but for the times, and for which of its runs were made before a kill."""
    kept = {name: value for name, value in body.items() if name not in ("seconds", "runs", "replayed")}
    if "outcome" in body:
        kept["outcome"] = {name: v for name, v in body["outcome"].items() if name not in PASSING_BODY}
        kept["tries"] = body["runs"] + body["replayed"]
    return kept


def measure(build: Callable[[Path], World], folder: Path) -> tuple[int, int]:
    """How many commits and how many runs an undisturbed life has."""
    folder.mkdir()
    database = Database(f"sqlite:///{folder}/assay.db")
    Base.metadata.create_all(database.engine)
    database.close()
    world = build(folder)
    runs = Killer("before run", -1)
    world.before_run(runs.tick)
    commits = Killer("after commit", -1)
    event.listen(Session, "after_commit", commits.tick)
    live(world, Killer())
    event.remove(Session, "after_commit", commits.tick)
    return commits.seen, runs.seen


def killers(commits: int, runs: int) -> Iterator[Killer]:
    """No kill; one at every commit, before or after it in turn; some between; and lives all cut short."""
    yield Killer()
    for number in range(1, commits + 1):
        if number % 2 or number <= BOTH:
            yield Killer("before commit", number)
        if not number % 2 or number <= BOTH:
            yield Killer("after commit", number)
    for number in range(1, runs + 1, 5):
        yield Killer("before run", number)
    for moment, number in ALWAYS:
        yield Killer(moment, number, every_life=True)


def main(world: str, folder: Path) -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(40),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    shards.BATCH = 4  # several batches of a few cases, as many cases make several of fifty
    build = WORLDS[world]
    commits, runs = measure(build, folder / "measured")
    assert threading.active_count() == 1, "a process with threads must not be forked"
    for index, killer in enumerate(killers(commits, runs)):
        lives = until_done(build, folder / str(index), killer)
        print(
            json.dumps({"killed": killer.name, "lives": lives, "rows": rows(folder / str(index))}), flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
