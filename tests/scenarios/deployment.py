"""A whole Assay beside a whole GitHub: the service is a process of its own, everything goes over HTTP.

with Deployment(tmp_path) as deployment:
    repository = deployment.hub.repository("octo/compiler")
    number = repository.open_pull({"requirements.txt": "openvino==2026.4.1\n"})
    deployment.wait_until_idle()
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import func, or_, select, update

from bot.store import Database, now, targets
from bot.store.models import (
    AuditEvent,
    Campaign,
    CampaignState,
    Command,
    CommandState,
    Delivery,
    DeliveryState,
    Effect,
    EffectState,
    Job,
    JobState,
    PeriodicTask,
)
from bot.targets.periodic_tasks import list_tasks
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble
from tests.github.server import RecordedRequest
from tests.scenarios.fake_toolchain import BLOCK_FILE, GOOD, configured, files, write_releases
from tests.scenarios.service_process import ServiceProcess
from tests.support.live_service import wait_for
from tests.support.postgres import addresses

_OPEN = (EffectState.PENDING.value, EffectState.SENDING.value)
_ENDED = tuple(state.value for state in CampaignState if state.ended)
#: A target asked about before this is one to be asked about again soon, or for the first time.
_NOT_LONG_AGO = targets.LONG_AGO + timedelta(days=1)
#: Duties that may find something to be done; the others keep house.
_ACTIVE_TASKS = ("schedules", *(task.name for task in list_tasks() if task.needs_github))
_JOBS = (JobState.PENDING.value, JobState.RUNNING.value)
TIMEOUT_S = 300.0  # for what takes a second where nothing else is to be done
POLL_S = 0.05
#: How much of a service's log, and of what it did, is shown where a scenario fails.
SHOWN_LINES, SHOWN_ROWS = 40, 60


class Deployment:
    """The double, and the service when it runs; `rows` is the service's database, opened beside it."""

    rows: Database

    def __init__(
        self,
        folder: Path,
        *,
        git_over_http: bool = False,
        real_compiler: bool = False,
        hurried: bool = True,
        **variables: str,
    ) -> None:
        """`hurried`: periodic tasks each second and short waits; else as in production."""
        self.folder, self.data_dir = folder, folder / "data"
        self.hub = GitHubDouble(folder)
        self.starts = 0
        self._git_over_http, self._variables = git_over_http, variables
        self._real_compiler, self._hurried = real_compiler, hurried
        self._service_process: ServiceProcess | None = None
        self._lock = threading.RLock()
        self._open = ExitStack()

    def __enter__(self) -> Deployment:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        write_releases(self.data_dir)
        self.database_url = self._open.enter_context(addresses())(self.data_dir)
        (self.folder / "key.pem").write_text(self.hub.private_key)
        self.hub.__enter__()
        self.start()
        self.rows = Database(self.database_url)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.describe_activity())
        try:
            self.stop()
        finally:
            self.rows.close()
            self._open.close()
            self.hub.__exit__(kind, error, trace)

    def repository(
        self, name: str = "octo/compiler", mode: str = "auto", *, thorough: bool = False, **fields: Any
    ) -> RepositoryDouble:
        """A repository that pins the good release, in a first commit that nobody is told of.

        thorough   failing cases are made small, and filed bugs are followed to the release they began in
        """
        made = self.hub.repository(name, **fields)
        if not made.head():
            config = configured(mode, cases=2, bisect="auto") if thorough else configured(mode)
            made.commit(files(GOOD, config), message="Begin", quiet=True)
        return made

    def start(self) -> None:
        """Starts the service; deliveries go to it."""
        with self._lock:
            self.starts += 1
            self._service_process = ServiceProcess(
                self._environment(),
                self.folder / "service.log",
                real_compiler=self._real_compiler,
                hurried=self._hurried,
            )
            self.hub.webhook_url = self._service_process.url

    @property
    def service_pid(self) -> int:
        """The id of the service's process."""
        assert self._service_process is not None, "the service does not run"
        return self._service_process.pid

    def stop(self) -> None:
        """Ends the service as an operator would; it must end well."""
        if self._service_process is not None:
            code = self._end(signal.SIGTERM)
            assert code == 0, f"the service ended with {code}: {self.log()[-2000:]}"

    def kill(self) -> None:
        """Kills the service as a power cut would, if it lives; deliveries wait for the next life."""
        self._end(signal.SIGKILL)

    def restart(self) -> bool:
        """Starts the service again if it was killed."""
        if self._service_process is None:
            if not self.rows.is_sqlite:
                self._expire_leases()
            self.start()
        return True

    def _expire_leases(self) -> None:
        """As if minutes had passed: a service that may not be alone cannot know that the others are dead."""
        with self.rows.transaction() as session:
            for model in (Campaign, Job, PeriodicTask):
                session.execute(update(model).where(model.lease_until.is_not(None)).values(lease_until=now()))

    def _end(self, how: signal.Signals) -> int | None:
        with self._lock:
            service_process, self._service_process = self._service_process, None
            self.hub.webhook_url = ""
            return service_process.end(how) if service_process is not None else None

    def log(self) -> str:
        """What the service logged, over all its lives."""
        return (self.folder / "service.log").read_text()

    def internal_errors(self, start: int = 0) -> list[str]:
        """What the service logged as its own fault, from a place in its log on."""
        lines = (json.loads(line) for line in self.log()[start:].splitlines() if line.startswith("{"))
        return [json.dumps(line)[:2000] for line in lines if line.get("level") in ("error", "critical")]

    def wait_until_idle(self, timeout_s: float = TIMEOUT_S) -> None:
        """Waits until all is said: nothing undelivered, unread, unfinished or unsent.

        A service that was killed is started again.
        """
        self.hub.deliveries.release()
        try:
            wait_for(lambda: self.restart() and not self.pending_work(), "all to be said", POLL_S, timeout_s)
        except AssertionError as error:
            deliveries = [str(one) for one in self.hub.deliveries.log if not one.arrived]
            left = f"{self.pending_work()}, not arrived: {deliveries}, sent to {self.hub.webhook_url!r}"
            raise AssertionError(f"{error}; left: {left}; {self.log()[-1000:]}") from None

    def pending_work(self) -> dict[str, int]:
        """What is left to be done, by kind."""
        lost = set(self.hub.deliveries.lost())  # as far as GitHub knows: an answer may be lost too
        with self.rows.reading() as session:

            def count(model: Any, *wheres: Any) -> int:
                return int(session.scalar(select(func.count()).select_from(model).where(*wheres)) or 0)

            left = {
                "hooks": len(self.hub.deliveries) + len(lost - set(session.scalars(select(Delivery.id)))),
                "deliveries": count(Delivery, Delivery.state == DeliveryState.PENDING.value),
                "commands": count(Command, Command.state == CommandState.PENDING.value),
                "jobs": count(Job, Job.state.in_(_JOBS)),
                "campaigns": count(Campaign, Campaign.state.not_in(_ENDED)),
                "effects": count(Effect, Effect.state.in_(_OPEN)),
                "checks": count(
                    Effect,
                    Effect.kind == "check_run",
                    Effect.state != EffectState.FAILED.value,
                    Effect.payload["status"].as_string() != "completed",
                ),
                "periodic-tasks": count(
                    PeriodicTask,
                    PeriodicTask.name.in_(_ACTIVE_TASKS),
                    or_(PeriodicTask.owner != "", PeriodicTask.done_at.is_(None)),
                ),
                "unread targets": len(
                    targets.due_for_reconciliation(session, _NOT_LONG_AGO, SHOWN_ROWS, has_webhook=True)
                ),
            }
        return {name: number for name, number in left.items() if number}

    def describe_activity(self, target: str = "") -> str:
        """What happened, for who must find out why a scenario failed: what is left, acts, effects, log.

        target   "" for all repositories
        """
        with self.rows.reading() as session:
            audit_events = session.scalars(_last(AuditEvent, AuditEvent.id, target)).all()
            effects = session.scalars(_last(Effect, Effect.created_at, target)).all()
        reported = [f"left to do: {self.pending_work() or 'nothing'}", "", "acts:"]
        reported += [
            f"  {one.at:%H:%M:%S.%f} {one.actor} {one.action} {one.subject}: {one.reason}"
            for one in audit_events[::-1]
        ]
        reported += ["", "effects:"]
        reported += [
            f"  {one.created_at:%H:%M:%S.%f} {one.kind} {one.key} #{one.number} {one.state} "
            f"{one.sent_revision}/{one.revision} {one.reason}"
            for one in effects[::-1]
        ]
        lines = [line for line in self.log().splitlines() if '"periodic_task.done"' not in line][
            -SHOWN_LINES:
        ]
        return "\n".join([*reported, "", "the service's log ends:", *(f"  {line[:500]}" for line in lines)])

    def database(self) -> AbstractContextManager[Database]:
        """The service's database, for a while."""
        return nullcontext(self.rows)

    def campaigns(self, target: str) -> list[Campaign]:
        """The campaigns of a repository, the oldest first."""
        with self.rows.reading() as session:
            rows = session.scalars(select(Campaign).where(Campaign.target == target).order_by(Campaign.id))
            found = list(rows)
            session.expunge_all()
        return found

    def requests(self, repository: RepositoryDouble, ending: str) -> list[RecordedRequest]:
        """The writes that came in below a repository on paths with this word in them."""
        return [
            one
            for one in self.hub.seen
            if one.method != "GET" and f"/repos/{repository.name}/" in one.path and ending in one.path
        ]

    @contextmanager
    def block_toolchains(self) -> Iterator[None]:
        """Meanwhile no campaign comes further than its toolchains, however slow we are."""
        held = self.data_dir / BLOCK_FILE
        held.touch()
        try:
            yield
        finally:
            held.unlink()

    def wait_for(self, look: Callable[[], object], action: str) -> None:
        """Waits for something to come true."""
        wait_for(look, action, 0.01, TIMEOUT_S)

    def _environment(self) -> dict[str, str]:
        return {
            "ASSAY_DATA_DIR": str(self.data_dir),
            "ASSAY_DATABASE_URL": self.database_url,
            "ASSAY_GITHUB_MODE": "live",
            "ASSAY_GITHUB_API_URL": self.hub.url,
            "ASSAY_GIT_URL": self.hub.git_http_url if self._git_over_http else self.hub.git_url,
            "ASSAY_GITHUB_APP_ID": self.hub.app_id,
            "ASSAY_GITHUB_PRIVATE_KEY_FILE": str(self.folder / "key.pem"),
            "ASSAY_WEBHOOK_SECRET": self.hub.secret,
            "ASSAY_WORKERS": "1",
            "ASSAY_LOG_FORMAT": "json",
            **self._variables,
        }


def _last(model: Any, order: Any, target: str) -> Any:
    """The rows of a repository that came last, the last of them first."""
    wanted = select(model).order_by(order.desc()).limit(SHOWN_ROWS)
    return wanted.where(model.target == target) if target else wanted
