"""A bug of a real compiler: OpenVINO and AffineGrid, in a repository that pins one release, then another.

Nothing is a stand-in but the campaign that found it, of which there are only the rows that jobs read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from bot import demo
from bot.campaigns.provenance import origin
from bot.campaigns.services import ReadyToolchain, Services
from bot.commands.job_reply import post_job_reply
from bot.config import RepositoryConfig, parse_config
from bot.jobs.job_context import GitHubReader as Asked
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.settings import Settings
from bot.store import Database, jobs, outcomes
from bot.store.models import (
    Base,
    Bug,
    BugState,
    Campaign,
    CampaignCase,
    Classification,
    Finding,
    Job,
    Pull,
    Toolchain,
)
from bot.store.outcomes import CacheKey
from bot.wiring.campaigns import campaign_services
from bot.worker import Worker
from fuzzing.cases import Corpus, TestCase
from fuzzing.migrate import onnx_backend_tests
from fuzzing.migrate.onnx_node_tests import NAME, collect, operator_of
from fuzzing.outcomes import Outcome, Verdict
from tests.bot.jobs.killing import passed

GOOD, BAD = "2024.0.0", "2026.4.1"
FAILING, PASSING = "test_affine_grid_2d_expanded", "test_abs"
START = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Found:
    """An issue on GitHub."""

    number: int
    title: str
    body: str = ""
    state: str = "open"
    pull: bool = False


@dataclass
class GitHubReader:
    """GitHub, as far as jobs read it."""

    head: str
    issues: tuple[Found, ...] = ()
    asked: list[str] = field(default_factory=list)

    def search_issues(self, target: str, words: str) -> Sequence[Found]:
        self.asked.append(words)
        return self.issues

    def branch_head(self, target: str, branch: str) -> str:
        return self.head

    def permission(self, target: str, login: str) -> str:
        raise AssertionError("no job about a bug asks for roles")

    def pull(self, target: str, number: int) -> Pull:
        raise AssertionError("no job about a bug asks for pull requests")


@dataclass
class Real:
    """The repository's commits, oldest first: good, bad, one that changes words only, good again."""

    settings: Settings
    database: Database
    services: Services
    shas: list[str]
    github_reader: GitHubReader
    case: str

    def do(self, kind: str, **arguments: Any) -> Job:
        """Asks for a job about the bug and has it done."""
        key = f"{kind}:{arguments}"[:64]
        with self.database.transaction() as session:
            jobs.enqueue(session, kind, demo.TARGET, key, START, again=True, bug_id=1, arguments=arguments)
        worker = Worker(
            JobQueue(
                self.database,
                self.settings,
                self.services,
                Lane.LONG,
                github_reader=cast("Asked", self.github_reader),
                backoff=(),
                reply=post_job_reply,
            )
        )
        assert worker.run_once()
        with self.database.reading() as session:
            job = jobs.of_key(session, key)
        assert job is not None
        return job

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)


@contextmanager
def real(folder: Path, pins: Sequence[str] = (GOOD, BAD, BAD, GOOD), head: int = 1) -> Iterator[Real]:
    """The repository, the case, and the rows of a campaign from the first commit to that of number `head`."""
    text = demo.CONFIG.replace("dry-run", "auto")
    commits = [
        (
            f"Commit {number}",
            {demo.CONFIG_FILE: text, demo.PIN_FILE: f"openvino=={pin}\n", "README": str(number)},
        )
        for number, pin in enumerate(pins)
    ]
    shas = demo.make_commits(folder / "repositories", commits)
    settings = Settings(data_dir=folder / "data", git_url=f"file://{folder}/repositories", workers=1)
    services = campaign_services(settings)
    database = Database(settings.database_url)
    Base.metadata.create_all(database.engine)
    cases = {case.provenance.test: case for case in migrated()}
    corpus = Corpus(settings.data_dir / "corpus")
    for case in cases.values():
        corpus.add(case)
    made = Real(settings, database, services, shas, GitHubReader(shas[head]), cases[FAILING].id)
    _campaign(made, parse_config(text.encode()), cases, head)
    try:
        yield made
    finally:
        database.close()


def migrated() -> Iterator[TestCase]:
    """The two cases."""
    tests = collect()
    chosen = [test for test in tests if test.name in (FAILING, PASSING)]
    for case in onnx_backend_tests.migrate_tests(NAME, chosen, operator_of(tests)):
        assert isinstance(case, TestCase)
        yield case


def _campaign(made: Real, config: RepositoryConfig, cases: dict[str, TestCase], head: int) -> None:
    base, ready = (_build(made, config, sha) for sha in (made.shas[0], made.shas[head]))
    with made.database.transaction() as session:
        session.add_all([_row(base), _row(ready)])
        session.flush()
        campaign = Campaign(
            target=demo.TARGET,
            head=made.shas[head],
            base=made.shas[0],
            ref=f"refs/heads/{demo.BRANCH}",
            trigger="push",
            state="done",
            config=config.to_json(),
            head_toolchain=ready.digest,
            base_toolchain=base.digest,
            created_at=START,
            updated_at=START,
        )
        session.add(campaign)
        session.flush()
        passing = cases[PASSING].id
        session.add(CampaignCase(campaign_id=campaign.id, rank=0, case_id=passing))
        key = CacheKey.of(ready.digest, campaign.config)
        signature = _signature(made, config, ready)
        outcomes.record(session, [passed(passing, key)], START)
        session.add(
            Bug(
                target=demo.TARGET,
                signature=signature,
                title="openvino: AffineGrid cannot be read",
                state=BugState.REPORTED.value,
                issue=7,
                first_seen=START,
                last_seen=START,
                campaign_id=campaign.id,
                seen=1,
            )
        )
        session.flush()
        finding = {"classification": Classification.REGRESSION.value, "verdict": Verdict.CRASH.value}
        session.add(
            Finding(campaign_id=campaign.id, case_id=made.case, signature=signature, bug_id=1, **finding)
        )


def _build(made: Real, config: RepositoryConfig, sha: str) -> ReadyToolchain:
    spec = made.services.resolve(config, partial(made.services.repositories.read, demo.TARGET, sha))
    return made.services.provision(spec, made.settings.data_dir, lambda _: None)


def _row(ready: ReadyToolchain) -> Toolchain:
    return Toolchain(
        digest=ready.digest,
        backend="openvino",
        provisioner="release",
        label=ready.spec.label,
        python=str(ready.python),
        versions=dict(ready.versions),
        requirements=list(ready.requirements),
        created_at=START,
    )


def _signature(made: Real, config: RepositoryConfig, ready: ReadyToolchain) -> str:
    """That of the case as it was found, run on the second commit's build."""
    received: list[dict[str, Any]] = []
    shard = made.services.make_shard(
        config,
        corpus=str(made.settings.data_dir / "corpus"),
        cases=(made.case,),
        backend=config.backend,
        toolchain=ready.digest,
        python=str(ready.python),
        device=config.device,
        profile=config.profile,
        options={},
        workers=1,
        fresh=True,
        repeats=1,
        ablate=False,
        budget_s=None,
    )
    made.services.runner.run(shard, received.append, threading.Event())
    (outcome,) = [Outcome.from_json(one["outcome"]) for one in received if one["event"] == "outcome"]
    about = origin(made.settings.data_dir / "corpus", made.case)
    return made.services.sign(outcome, about.operator, about.frontend).key
