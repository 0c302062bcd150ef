"""Which commits may run: every path to the code of a commit asks for its approval.

`PATHS` lists all of them. A new one must be added here, with the approval that it asks for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import bot
from bot.approval import NotApprovedError, check_approval
from bot.bisection.releases import Range
from bot.bugs import culprit, reproduction
from bot.bugs.release_bisection import ReleaseBisection
from bot.commit_files import CommitFiles
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.settings import Settings
from bot.store import Database, jobs
from bot.store.models import Campaign, Job, JobState, Pull, Retest
from bot.worker import Worker
from tests.bot.campaigns import fakes
from tests.bot.jobs import killing
from tests.bot.jobs.killing import START, TARGET
from tests.scenarios import fake_toolchain

FORK_HEAD, FORK_PARENT, BRANCH_COMMIT = "e" * 40, "d" * 40, "b" * 40
NUMBER = 12
PACKAGE = Path(bot.__file__).parent

#: Calls that start the way to code of a commit → the functions that hold them, and what approves the commit.
PATHS: dict[str, dict[str, str]] = {
    "CampaignIntent": {
        "webhooks/events/push.py:push": "a push to a branch of the target",
        "targets/merge_groups.py:handle": "a merge queue, which people with write access fill",
        "targets/periodic_tasks/schedules.py:_start_campaign": "the head of the default branch",
        "targets/repository_sync.py:_sync_branch": "the head of a branch of the target",
        "pulls/check_run_actions.py:_rerun_branch": "the commit of a branch's campaign",
        "pulls/pull_evaluation.py:_build_intent": "check_approval, through PullPolicy.decide",
    },
    "build_toolchain": {
        "campaigns/steps/provisioning.py:_make": "the campaign, by its CampaignIntent",
        "bugs/reproduction.py:_make_build": "its callers: build_of_commit, build_of_release",
    },
    "_make_build": {
        "bugs/reproduction.py:build_of_commit": "require_approval",
        "bugs/reproduction.py:build_of_release": (
            "a release, of the package that the campaign's configuration names"
        ),
    },
    "provision": {
        "campaigns/run/toolchain_build.py:build_toolchain": "its callers, above",
    },
    "resolve": {
        "bugs/reproduction.py:_resolve_build": "require_approval",
        "bugs/release_bisection.py:_resolve_approved": "require_approval",
        "campaigns/run/toolchain_build.py:build_toolchain": "its callers, above",
        "campaigns/run/out_of_reach.py:read_unreachable": "the campaign, by its CampaignIntent",
        "campaigns/run/unchanged_compiler.py:find_unchanged": "the campaign, by its CampaignIntent",
    },
    "Approval": {
        "approval.py:check_approval": "",
        "approval.py:require_approval": "",
        "approval.py:_check_campaign": "",
    },
}


def test_every_path_to_the_code_of_a_commit_is_known() -> None:
    found: dict[str, set[str]] = {name: set() for name in PATHS}
    for path in sorted(PACKAGE.rglob("*.py")):
        for caller, called in _calls(ast.parse(path.read_bytes())):
            if called in found:
                found[called].add(f"{path.relative_to(PACKAGE).as_posix()}:{caller}")
    for name in ("provision", "resolve"):
        found[name] = {one for one in found[name] if not one.startswith(_OTHERS)}
    assert found == {name: set(places) for name, places in PATHS.items()}


#: Where `resolve` and `provision` are other functions, or somebody at the command line names the code.
_OTHERS = ("cli/", "demo.py", "github/", "proposals/tree.py", "reports/", "bisection/", "toolchains/")


def _calls(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, str]]:
    """(function that holds the call, last name of what is called)."""
    for node in ast.iter_child_nodes(tree):
        name = (
            node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not inside else inside
        )
        if isinstance(node, ast.Call):
            function = node.func
            yield (
                inside,
                function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", ""),
            )
        yield from _calls(node, name)


class Repository:
    """A bug that a campaign of a branch found, and a pull request of a fork, which pins another release."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.settings = Settings(data_dir=folder, workers=1)
        killing.prepare(self.settings.database_url)
        self.database = Database(self.settings.database_url)
        self.services = killing.services(self.settings)
        repositories: Any = self.services.repositories
        repositories.of_forks = {FORK_HEAD, FORK_PARENT}
        self.read_at: set[str] = set()
        for sha in (FORK_HEAD, FORK_PARENT):
            pin = f"openvino=={fake_toolchain.GOOD}\n".encode()
            repositories.files[sha] = {fakes.CONFIG: killing.CONFIG, fakes.PIN: pin}
        read = repositories.read

        def recorded(target: str, sha: str, path: str) -> bytes | None:
            self.read_at.add(sha)
            found: bytes | None = read(target, sha, path)
            return found

        repositories.read = recorded
        with self.database.transaction() as session:
            session.delete(session.get_one(Job, 1))
            session.add(
                Pull(
                    target=TARGET,
                    number=NUMBER,
                    head=FORK_HEAD,
                    base="c" * 40,
                    base_ref="main",
                    head_repository="stranger/compiler",
                    author="stranger",
                    association="FIRST_TIMER",
                    updated_at=START,
                )
            )

    def retest(self, **arguments: Any) -> Job:
        """A retest that somebody with write access requested, after it ended."""
        with self.database.transaction() as session:
            jobs.enqueue(
                session,
                "retest",
                TARGET,
                "k2",
                START,
                bug_id=1,
                again=True,
                arguments=arguments,
                requested_by="ada",
            )
        assert Worker(JobQueue(self.database, self.settings, self.services, Lane.LONG, backoff=())).run_once()
        with self.database.reading() as session:
            found = jobs.of_key(session, "k2")
        assert found is not None
        return found

    def change(self, do: Callable[[Pull, Campaign], None]) -> None:
        with self.database.transaction() as session:
            do(session.get_one(Pull, (TARGET, NUMBER)), session.get_one(Campaign, 1))

    @property
    def retested(self) -> list[str]:
        """The commits on which the bug's case was run."""
        with self.database.reading() as session:
            return [row.commit for row in session.query(Retest).order_by(Retest.number)][1:]


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path / "repository")
    yield made
    made.database.close()


#: `/assay test #12`, `/assay test SHA`, `/assay fixed-by SHA`.
REQUESTS = [
    {"purpose": "asked", "on": f"#{NUMBER}"},
    {"purpose": "asked", "on": FORK_HEAD},
    {"purpose": "fix", "commit": FORK_HEAD},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_retest_of_a_fork_needs_its_commit_approved(
    repository: Repository, request_: dict[str, str]
) -> None:
    job = repository.retest(**request_)
    assert (job.state, repository.retested, repository.read_at) == (JobState.FAILED.value, [], set())
    assert f"`/assay run {FORK_HEAD}` on its pull request approves it" in job.reason


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_approved_commit_is_retested_with_the_configuration_of_its_base(
    repository: Repository, request_: dict[str, str]
) -> None:
    def approve(pull: Pull, _: Campaign) -> None:
        pull.approved_head, pull.approved_by = FORK_HEAD, "ada"

    def read(target: str, sha: str, path: str) -> bytes | None:
        assert (sha, path) != (FORK_HEAD, fakes.CONFIG), "a fork's own configuration is never read"
        found: bytes | None = original(target, sha, path)
        return found

    repositories: Any = repository.services.repositories
    original, repositories.read = repositories.read, read
    repository.change(approve)
    job = repository.retest(**request_)
    assert job.state == JobState.DONE.value, job.reason
    assert repository.retested == [FORK_HEAD]


def test_an_approval_ends_with_the_next_push(repository: Repository) -> None:
    def push(pull: Pull, _: Campaign) -> None:
        pull.approved_head, pull.approved_by, pull.head = FORK_PARENT, "ada", FORK_HEAD

    repository.change(push)
    assert repository.retest(purpose="asked", on=f"#{NUMBER}").state == JobState.FAILED.value
    assert repository.retested == []


def test_a_commit_of_a_branch_needs_no_approval(repository: Repository) -> None:
    assert repository.retest(purpose="asked", on=BRANCH_COMMIT).state == JobState.DONE.value
    assert repository.retested == [BRANCH_COMMIT]


def test_between_base_and_head_of_a_fork_nothing_is_built(repository: Repository) -> None:
    """Approval names the head alone: a commit below it may pin anything."""

    def fork(pull: Pull, campaign: Campaign) -> None:
        pull.approved_head, pull.approved_by = FORK_HEAD, "ada"
        campaign.pull, campaign.head = NUMBER, FORK_HEAD

    repository.change(fork)
    context: Any = _context(repository)
    with repository.database.reading() as session:
        campaign = session.get_one(Campaign, 1)
    with pytest.raises(NotApprovedError):
        reproduction.build_of_commit(context, campaign, FORK_PARENT)
    with repository.database.reading() as session:
        known = reproduction.load_bug_case(session, context)
    repositories: Any = repository.services.repositories
    repositories.commits = lambda *_: [FORK_PARENT, FORK_HEAD]
    assert culprit.find_culprit(context, known) is None
    search = ReleaseBisection(context, known, Range("openvino", "2025.1", "2026.4"))
    for sha in (FORK_PARENT, FORK_HEAD):
        read = CommitFiles(repositories, TARGET, sha)
        if sha == FORK_PARENT:
            with pytest.raises(NotApprovedError):
                search._resolve_approved(known.config, read, repository.settings.data_dir)
        else:
            search._resolve_approved(known.config, read, repository.settings.data_dir)
    assert FORK_PARENT not in repository.read_at
    assert reproduction.build_of_commit(context, campaign, FORK_HEAD).commit == FORK_HEAD


def _context(repository: Repository) -> Any:
    from bot.jobs.job_context import JobContext, JobSpec

    class Context(JobContext):
        def heartbeat(self) -> None: ...

    spec = JobSpec(1, "bisect", "k", 1, TARGET, 1, None, {}, "ada")
    import threading

    return Context(
        spec, repository.database, repository.settings, repository.services, "me", threading.Event()
    )


@pytest.mark.parametrize("role", ["none", "read", "triage", "write"])
def test_an_author_with_write_access_approves_the_present_head_only(role: str) -> None:
    pull = Pull(
        target=TARGET,
        number=1,
        head=FORK_HEAD,
        base="c" * 40,
        head_repository="ada/compiler",
        author="ada",
        association="MEMBER",
        approved_head="",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        base_ref="main",
    )
    approval = check_approval(pull, FORK_HEAD, lambda _: role)
    assert (approval.may_run, approval.config_commit) == (
        role == "write",
        FORK_HEAD if role == "write" else "c" * 40,
    )
    assert not check_approval(pull, FORK_PARENT, lambda _: role).may_run
