"""A whole Assay beside a whole GitHub: the service is a process of its own, everything goes over HTTP.

with Stage(tmp_path) as stage:
    repository = stage.repository("octo/compiler")
    number = repository.open_pull({"requirements.txt": "openvino==2026.4.1\n"})
    stage.quiet()
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import func, select

from bot.store import Database
from bot.store.models import (
    Campaign,
    CampaignState,
    Delivery,
    DeliveryState,
    Effect,
    EffectState,
    Job,
    JobState,
)
from tests.github.double import GitHubDouble
from tests.github.people import RepositoryDouble
from tests.scenarios.toolchain import GOOD, files
from tests.support.campaigning import await_

_OPEN = (EffectState.INTENDED.value, EffectState.SENDING.value)
_ENDED = tuple(state.value for state in CampaignState if state.ended)
_JOBS = (JobState.PENDING.value, JobState.RUNNING.value)
PATIENCE_S = 120.0


class Stage:
    """The double, and the service when it runs."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder, self.data_dir = folder, folder / "data"
        self.hub = GitHubDouble(folder)
        self.lives = 0
        self._variables = variables
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Stage:
        self.data_dir.mkdir(parents=True)
        (self.folder / "key.pem").write_text(self.hub.private_key)
        self.hub.__enter__()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self.hub.__exit__(kind, error, trace)

    def repository(self, name: str = "octo/compiler", mode: str = "auto", **fields: Any) -> RepositoryDouble:
        """A repository that pins the good release, in a first commit that nobody is told of."""
        made = self.hub.repository(name, **fields)
        if not made.head():
            made.commit(files(GOOD, mode), message="Begin", quiet=True)
        return made

    def start(self) -> None:
        """Starts the service; deliveries go to it."""
        self.lives += 1
        command = [sys.executable, "-P", "-m", "tests.scenarios.service"]
        with open(self.folder / "service.log", "a") as log:
            self._process = subprocess.Popen(
                command,
                env=self._environment(),
                cwd=Path(__file__).parents[2],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"http://\S+/webhooks/github", line)
        assert found, f"the service did not start: {self.log()[-2000:]}"
        self.hub.webhook_url = found[0].rstrip(")")

    def stop(self) -> None:
        """Ends the service as an operator would; it must end well."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the service as a power cut would; deliveries find nobody."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self.hub.webhook_url = ""
        process.send_signal(how)
        code = process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        if how is signal.SIGTERM:
            assert code == 0, f"the service ended with {code}: {self.log()[-2000:]}"

    def log(self) -> str:
        """What the service logged, over all its lives."""
        return (self.folder / "service.log").read_text()

    def quiet(self, patience_s: float = PATIENCE_S) -> None:
        """Waits until all is said: nothing undelivered, unread, unfinished or unsent."""
        self.hub.settle()
        await_(lambda: not self.busy(), "nothing to be left to do", 0.02, patience_s)

    def busy(self) -> dict[str, int]:
        """What is left to be done, by kind."""
        with self.database() as database, database.reading() as session:

            def count(model: Any, *wheres: Any) -> int:
                return int(session.scalar(select(func.count()).select_from(model).where(*wheres)) or 0)

            left = {
                "deliveries": count(Delivery, Delivery.state == DeliveryState.PENDING.value),
                "jobs": count(Job, Job.state.in_(_JOBS)),
                "campaigns": count(Campaign, Campaign.state.not_in(_ENDED)),
                "effects": count(Effect, Effect.state.in_(_OPEN)),
                "checks": count(
                    Effect,
                    Effect.kind == "check_run",
                    Effect.state != EffectState.FAILED.value,
                    Effect.payload["status"].as_string() != "completed",
                ),
            }
        return {name: number for name, number in left.items() if number}

    def database(self) -> _Opened:
        """The service's database, opened beside it."""
        return _Opened(self.data_dir)

    def campaigns(self) -> list[tuple[str, int | None, str, str]]:
        """(trigger, pull request, state, reason) of each campaign, the oldest first."""
        with self.database() as database, database.reading() as session:
            rows = session.scalars(select(Campaign).order_by(Campaign.id))
            return [(row.trigger, row.pull, row.state, row.reason) for row in rows]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return kept | {
            "ASSAY_DATA_DIR": str(self.data_dir),
            "ASSAY_GITHUB_MODE": "live",
            "ASSAY_GITHUB_API_URL": self.hub.url,
            "ASSAY_GIT_URL": self.hub.git_url,
            "ASSAY_GITHUB_APP_ID": self.hub.app_id,
            "ASSAY_GITHUB_PRIVATE_KEY_FILE": str(self.folder / "key.pem"),
            "ASSAY_WEBHOOK_SECRET": self.hub.secret,
            "ASSAY_WORKERS": "1",
            "ASSAY_LOG_FORMAT": "json",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **self._variables,
        }


class _Opened:
    def __init__(self, data_dir: Path) -> None:
        self._database = Database(f"sqlite:///{data_dir}/assay.db")

    def __enter__(self) -> Database:
        return self._database

    def __exit__(self, *_: object) -> None:
        self._database.close()
