"""Runs one campaign again and again, killed with SIGKILL at every moment that matters; prints what is left.

    python -m tests.bot.campaigns.killing WORLD FOLDER

prints one JSON object a line: {"killed": "never" | "before commit 3" | ..., "lives": N, "rows": {...}}.
A life is a process of its own, forked from this one, which holds nothing but imported modules.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.orm import Session

from bot.campaigns.campaign_queue import CampaignQueue
from bot.campaigns.intents import handle
from bot.campaigns.run import shards
from bot.campaigns.services import Services, Settings
from bot.store import Database
from bot.worker import Worker
from tests.bot.campaigns import fakes
from tests.support.crash_points import (
    Killer,
    make_tables,
    print_result,
    rows,
    run_until_complete,
    silence_logs,
)
from tests.support.postgres import addresses

#: The first commits are killed at on both sides. Behind a commit and before the next there is little between.
BOTH = 9
#: Of the commits after them, and of the runs of cases, each so many'th is killed at.
COMMITS, RUNS = 3, 10
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
    fakes.write_corpus(folder / "corpus")
    runner = fakes.Runner(
        replaced={
            "Exp_flaky_at_head": (("pass",), ("crash", "pass")),
            "Gelu_flaky_at_base": (("pass", "crash"), ("crash",)),
        }
    )
    reducing = fakes.PlainConfig(reduction=fakes.PlainReduction(cases=10))
    files = {fakes.CONFIG: fakes.to_bytes(reducing), fakes.PIN: b"standin==2"}
    repositories = fakes.Repositories({"2" * 40: files})

    def before_run(call: Callable[[], None]) -> None:
        runner.before = lambda _case, _stop: call()

    return World(
        fakes.PlainSettings(folder),
        fakes.services(runner=runner, repositories=repositories),
        before_run,
    )


#: The place for worlds with real collaborators: a name, and how to build one below a folder. Their outcomes
#: must not depend on luck either.
WORLDS: dict[str, Callable[[Path], World]] = {"standins": standin_world}


def live(world: World, url: str, killer: Killer) -> None:
    """One life: the delivery is handled (again), then the engine works until nothing is due."""
    database = Database(url)
    killer.arm(database, world.before_run)
    with database.transaction() as session:
        handle(session, fakes.Intent())
    engine = Worker(CampaignQueue(database, world.settings, world.services))
    engine.start(free_other_leases=True)
    while engine.run_once():
        pass
    database.close()


def measure(world: World, url: str) -> tuple[int, int]:
    """How many commits and how many runs an undisturbed life has."""
    runs = Killer("before run", -1)
    world.before_run(runs.tick)
    commits = Killer("after commit", -1)
    event.listen(Session, "after_commit", commits.tick)
    live(world, url, Killer())
    event.remove(Session, "after_commit", commits.tick)
    return commits.seen, runs.seen


def killers(commits: int, runs: int) -> Iterator[Killer]:
    """No kill; one at many commits, before or after it in turn; some between; and lives all cut short."""
    yield Killer()
    for number in range(1, BOTH + 1):
        yield Killer("before commit", number)
        yield Killer("after commit", number)
    for number in range(BOTH + 1, commits + 1, COMMITS):
        yield Killer("before commit" if number % 2 else "after commit", number)
    for number in range(1, runs + 1, RUNS):
        yield Killer("before run", number)
    for moment, number in ALWAYS:
        yield Killer(moment, number, every_run=True)


def main(name: str, folder: Path) -> None:
    silence_logs()
    shards.BATCH = 4  # several batches of a few cases, as many cases make several of fifty
    with addresses() as address:

        def made(place: str) -> tuple[World, str]:
            (folder / place).mkdir()
            make_tables(url := address(folder / place))
            return WORLDS[name](folder / place), url

        commits, runs = measure(*made("measured"))
        assert threading.active_count() == 1, "a process with threads must not be forked"
        for index, killer in enumerate(killers(commits, runs)):
            world, url = made(str(index))
            lives = run_until_complete(partial(live, world, url), killer, LIVES)
            print_result(killer, lives, rows(url))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
