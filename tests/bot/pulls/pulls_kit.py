"""Pull requests of a small compiler, a GitHub that answers from a table, and commits in a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bot.campaigns.services import Services, Settings
from bot.commands.job_reply import post_job_reply
from bot.config import RepositoryConfig, parse_config
from bot.errors import RefusalError
from bot.jobs.job_context import GitHubReader as Asked
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.pulls import pull_lifecycle
from bot.pulls.check_run_updater import CheckRunUpdater
from bot.store import Database, audit, pulls
from bot.store.models import Base, Campaign, Effect, Job, Pull
from bot.webhooks.intents import PullIntent
from bot.worker import Worker

TARGET = "octo/compiler"
FORK = "stranger/compiler"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
BASE, ROOT = "b" * 40, "a" * 40
CONFIG = """
version: 1
backend: openvino
budget: 4m
reports: {mode: auto}
pull_requests: {budget: 2m}
"""


def head(number: int) -> str:
    """The commit of the `number`-th push."""
    return f"{number:040x}"


@dataclass
class Clock:
    """Time that passes when told to."""

    present: datetime = START

    def now(self) -> datetime:
        return self.present

    def monotonic(self) -> float:
        return self.present.timestamp()

    def advance(self, seconds: float) -> None:
        self.present += timedelta(seconds=seconds)


@dataclass
class Mirrors:
    """Commit → path → content; every other commit is configured like CONFIG."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    reads: list[tuple[str, str]] = field(default_factory=list)
    trouble: Exception | None = None

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        if self.trouble is not None:
            raise self.trouble
        assert target == TARGET
        self.reads.append((sha, path))
        text = self.files.get(sha, {".github/assay.yml": CONFIG}).get(path)
        return None if text is None else text.encode()

    def is_on_branch(self, target: str, commit: str) -> bool:
        return commit in (BASE, ROOT)

    def merge_base(self, target: str, base: str, head: str) -> str:
        return ROOT

    @property
    def read_at(self) -> set[str]:
        """The commits of which anything was read."""
        return {sha for sha, _ in self.reads}


@dataclass
class GitHubReader:
    """GitHub: roles by login, and what it says of pull requests now."""

    roles: dict[str, str] = field(default_factory=dict)
    now: dict[int, PullIntent] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def pull(self, target: str, number: int) -> PullIntent:
        if number not in self.now:
            raise RefusalError(f"GitHub answered 404 for {target} #{number}")
        return self.now[number]

    def permission(self, target: str, login: str) -> str:
        self.asked.append(login)
        return self.roles.get(login, "none")


def pull_intent(number: int = 7, **changes: Any) -> PullIntent:
    """What GitHub says of a pull request from a branch of the repository itself."""
    fields: dict[str, Any] = {
        "target": TARGET,
        "number": number,
        "action": "opened",
        "head": head(1),
        "base": BASE,
        "base_ref": "main",
        "head_repository": TARGET,
        "author": "jane",
        "association": "NONE",
        "draft": False,
        "state": "open",
        "updated_at": START,
    }
    return PullIntent(**(fields | changes))


class PullHarness:
    """A database, the quick lane's worker over it, and time."""

    def __init__(self, folder: Path, *, asking: bool = True) -> None:
        self.clock, self.mirrors, self.github_reader = Clock(), Mirrors(), GitHubReader()
        self.database = Database(f"sqlite:///{folder}/assay.db")
        Base.metadata.create_all(self.database.engine)
        self.woken = 0
        github_reader = self.github_reader if asking else None
        self.corpus = folder / "corpus"
        few = {"clock": self.clock, "repositories": self.mirrors, "corpus": self.corpus}
        self.worker = Worker(
            JobQueue(
                self.database,
                cast("Settings", None),
                cast("Services", SimpleNamespace(**few)),
                Lane.QUICK,
                github_reader=cast("Asked | None", github_reader),
                wake=self._wake,
                reply=post_job_reply,
            )
        )
        self.checks = CheckRunUpdater(self.database, self.corpus, clock=self.clock.now)

    def _wake(self) -> None:
        self.woken += 1

    def receive(self, intent: PullIntent, *, known: bool = True) -> Pull:
        """Takes an event; `known` if GitHub says the same when it is asked."""
        if known:
            self.github_reader.now[intent.number] = intent
        with self.database.transaction() as session:
            return pull_lifecycle.apply_update(session, pulls.row(TARGET, intent), self.clock.now())

    def approve(self, number: int, commit: str, by: str = "maintainer") -> bool:
        with self.database.transaction() as session:
            pull = pulls.get(session, TARGET, number)
            assert pull is not None
            return pull_lifecycle.approve(session, pull, commit, by, self.clock.now())

    def ask(self, by: str, overrides: dict[str, Any], number: int = 7) -> None:
        """Asks for the head to be tested again, as a command does."""
        at = self.clock.now()
        with self.database.transaction() as session:
            pull_lifecycle.schedule_evaluation(
                session, TARGET, number, at, at, again="asked", requested_by=by, overrides=overrides
            )

    def stop(self, number: int = 7, *, commented_at: datetime | None = None) -> int:
        """Stops what is at work, as a command commented at that time does, by default now."""
        with self.database.transaction() as session:
            pull = pulls.get(session, TARGET, number)
            assert pull is not None
            at = self.clock.now()
            return pull_lifecycle.stop_testing(session, pull, "stopped by maintainer", commented_at or at, at)

    def work(self, seconds: float = 2.0) -> None:
        """Lets time pass and does what is due."""
        self.clock.advance(seconds)
        for _ in range(100):
            if not self.worker.run_once():
                return
        raise AssertionError("the worker never rests")

    def campaigns(self) -> list[Campaign]:
        with self.database.reading() as session:
            return session.query(Campaign).order_by(Campaign.id).all()

    def effects(self) -> list[Effect]:
        with self.database.reading() as session:
            return session.query(Effect).order_by(Effect.created_at, Effect.key).all()

    def audit_events(self, number: int = 7) -> list[str]:
        with self.database.reading() as session:
            return [act.action for act in audit.of(session, TARGET, f"pull:{number}")]

    def job(self) -> tuple[str, str]:
        """The state and the reason of the only job."""
        with self.database.reading() as session:
            (job,) = session.query(Job).all()
            return job.state, job.reason

    def change(self, do: Callable[[Campaign], None], campaign: int) -> None:
        """Does something to a campaign's row."""
        with self.database.transaction() as session:
            do(session.get_one(Campaign, campaign))


def config() -> RepositoryConfig:
    """CONFIG, read."""
    return parse_config(CONFIG.encode(), "assay.yml")
