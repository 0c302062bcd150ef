"""Assay's watch over a double of GitHub: real rows, real requests, and a clock to turn by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bot.artifacts import Artifacts
from bot.campaigns import intents
from bot.config import RepositoryConfig, parse_config
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.reader import Reader
from bot.github.resources import HookInfo
from bot.pulls import pull_lifecycle
from bot.store import Database, Session, inbox, periodic_tasks
from bot.store.models import AuditEvent, Campaign, Delivery, Target
from bot.targets import installations, merge_groups, repositories
from bot.targets.dependencies import Dependencies
from bot.targets.event_filter import EventFilter
from bot.targets.periodic_tasks import PeriodicTask, list_tasks
from bot.targets.task_queue import TaskQueue
from bot.webhooks.inbox_queue import InboxQueue
from bot.webhooks.intents import (
    CampaignIntent,
    CommentIntent,
    Ignored,
    InstallationIntent,
    Intent,
    IssueIntent,
    MergeGroupIntent,
    PullIntent,
    RepositoryIntent,
)
from bot.worker import Worker, WorkItem
from tests.github.double import GitHubDouble

CONFIG = "version: 1\nbackend: openvino\n"


@dataclass
class Clock:
    """A clock that stands still until told."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


class HookedReader(Reader):
    """The reader, told that webhooks go somewhere: the double gives them to whoever takes them instead."""

    hook = "https://assay.example.org/webhooks/github"

    def hook_config(self) -> HookInfo:
        return HookInfo(self.hook, "json", insecure=False)


@dataclass
class TargetHarness:
    """The room over one database. `handled` are the intents that other rooms would carry out."""

    database: Database
    hub: GitHubDouble
    clock: Clock
    dependencies: Dependencies
    handled: list[Intent]
    reader: HookedReader

    def deliver(self, limit: int = 1000) -> int:
        """Reads what GitHub wants to tell, in order, as the service would; returns how many deliveries."""
        count = 0
        while len(self.hub.deliveries) and count < limit:
            self.take(self.hub.deliveries.pop())
            count += 1
        return count

    def take(self, delivery: Any) -> None:
        """Takes one delivery in."""
        with self.database.transaction() as session:
            arrival = inbox.ReceivedDelivery(delivery.guid, delivery.event, delivery.body, self.clock())
            inbox.store(session, [arrival])
        Worker(InboxQueue(self.database, self.dependencies.handle_intent)).run_once()
        with self.database.reading() as session:
            row = session.get_one(Delivery, delivery.guid)
            assert row.state in ("done", "ignored"), row.reason

    def drop(self) -> None:
        """What GitHub wants to tell is lost."""
        while len(self.hub.deliveries):
            self.hub.deliveries.pop()

    def overtake(
        self, monkeypatch: pytest.MonkeyPatch, question: str, event: Callable[[], object], *, nth: int = 1
    ) -> None:
        """The webhook of `event` arrives between GitHub's `nth` answer to `question` and what we do then."""
        ask, asked = getattr(self.reader, question), 0

        def overtaken(*about: object) -> object:
            nonlocal asked
            asked += 1
            mine = asked == nth
            try:
                return ask(*about)
            finally:
                if mine:
                    event()
                    self.deliver()

        monkeypatch.setattr(self.reader, question, overtaken)

    def vacate(self, name: str) -> None:
        """The double leads from a repository's old address to its new one; others may have the name now."""
        (self.hub.hub.folder / f"{name}.git").unlink()

    def do(self, *names: str) -> dict[str, str]:
        """Runs these tasks now, due or not; their notes."""
        with self.database.transaction() as session:
            for name in names:
                periodic_tasks.run_soon(session, name)
        run_tasks(self.dependencies, [task for task in list_tasks() if task.name in names])
        with self.database.reading() as session:
            return {row.name: row.note for row in periodic_tasks.list_all(session) if row.name in names}

    def target(self, name: str = "octo/compiler") -> Target:
        with self.database.reading() as session:
            return session.get_one(Target, name)

    def targets(self) -> dict[str, str]:
        with self.database.reading() as session:
            return {row.name: row.state for row in session.scalars(select(Target))}

    def campaigns(self) -> list[Campaign]:
        with self.database.reading() as session:
            return list(session.scalars(select(Campaign).order_by(Campaign.id)))

    def audit_events(self, name: str = "octo/compiler") -> list[str]:
        with self.database.reading() as session:
            query = select(AuditEvent).where(AuditEvent.target == name).order_by(AuditEvent.id)
            return [act.action for act in session.scalars(query)]


@contextmanager
def open_harness(
    folder: Path, *, token: str = "", url: str = "", watch: tuple[str, ...] = ()
) -> Iterator[TargetHarness]:
    """A watch; `token` is somebody's login, whose token is used instead of the App."""
    clock = Clock()
    database = Database(url or f"sqlite:///{folder}/assay.db")
    database.migrate()
    # Tokens are signed with the machine's own time, so GitHub's clock is that; ours runs ahead.
    with GitHubDouble(folder) as hub:
        credentials = (
            Credentials(token=hub.token(token))
            if token
            else Credentials(app_id=hub.app_id, private_key=hub.private_key)
        )
        github = GitHubApi(credentials, hub.url)
        handled: list[Intent] = []

        def start(session: Session, intent: CampaignIntent) -> None:
            intents.handle(session, intent)

        def handle(session: Session, intent: Intent) -> None:
            handled.append(intent)
            if isinstance(intent, PullIntent):
                pull_lifecycle.handle(session, intent)

        handlers: dict[type[Intent], Any] = {
            CampaignIntent: start,
            PullIntent: handle,
            CommentIntent: handle,
            IssueIntent: handle,
            InstallationIntent: partial(installations.handle, clock=clock),
            RepositoryIntent: partial(repositories.handle, clock=clock),
            MergeGroupIntent: partial(merge_groups.handle, start=start),
        }

        def dispatch(session: Session, intent: Intent) -> object:
            answer = handlers[type(intent)](session, intent)
            return answer if isinstance(answer, Ignored) else None

        reader = HookedReader(github)
        dependencies = Dependencies(
            database=database,
            handle_intent=EventFilter(dispatch, clock=clock),
            start=start,
            load_config=partial(_configure, hub),
            data_dir=folder,
            artifacts=Artifacts("", folder),
            github=reader,
            watch=watch,
            clock=clock,
        )
        try:
            yield TargetHarness(database, hub, clock, dependencies, handled, reader)
        finally:
            github.close()
            database.close()


def _configure(hub: GitHubDouble, target: str, commit: str) -> RepositoryConfig | None:
    """Read from the double's own git, where the service has a mirror."""
    record = hub.hub.world.named(target)
    assert record is not None
    text = record.git.read(commit, ".github/assay.yml")
    return None if text is None else parse_config(text)


class _Recorder(Worker):
    """A worker that records the tasks that it processed."""

    def __init__(self, queue: TaskQueue) -> None:
        super().__init__(queue)
        self.names: list[str] = []

    def process(self, item: WorkItem) -> None:
        self.names.append(str(item.log_fields["task"]))
        super().process(item)


def run_tasks(
    dependencies: Dependencies,
    tasks: Sequence[PeriodicTask] | None = None,
    stop: threading.Event | None = None,
) -> list[str]:
    """Runs the due tasks once; the names of those that this worker claimed."""
    worker = _Recorder(TaskQueue(dependencies, tasks))
    worker.run_once(stop)
    return worker.names
