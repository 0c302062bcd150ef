"""`/assay bisect` in a compiler's own repository: the commit, its pull request and its author are named.

The repository is served by git and made here, the wheels are of a tiny compiler; every commit that is tried
is really laid over a wheel, and the case really runs on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.bugs import first_bad_release
from bot.cli.common.options import validate_configuration
from bot.commands.job_reply import post_job_reply
from bot.config import RepositoryConfig, ToolchainConfig
from bot.config import layouts as known_layouts
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.settings import Settings
from bot.store import Database, jobs, now
from bot.store.models import Base, Bug, BugState, Campaign, Classification, Finding, Job, Toolchain
from bot.toolchains import commit_toolchain
from bot.wiring.campaigns import campaign_services
from bot.worker import Worker
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.outcomes import Verdict
from tests.bot.bisection.commit_world import BUILD, PACK
from tests.bot.bisection.tiny_index import BACKEND, GOOD, WRONG, make_index
from tests.bot.cli.command_helpers import GOOD as CASE
from tests.bot.cli.test_bisect_commits import CODE, LAYOUT, NOTES
from tests.bot.toolchains.test_overlay import commit, git
from tests.support.smoke import import_alone
from tests.support.wheels import make_wheel

TARGET = "octo/tinyc"
DIGEST = "d" * 64


class Repository:
    """The compiler's repository: two releases, a merged branch that brings the bug, and what follows.

    base, before  the commits on the branch before the one that brings it
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch", "main")
        git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
        git(folder, "config", "uploadpack.allowFilter", "true")
        commit(folder, {CODE: GOOD, "README": "1\n", "pack.py": PACK})
        git(folder, "tag", "v1.0.0")
        commit(folder, {NOTES: "NOTE = 1\n"})
        git(folder, "checkout", "--quiet", "-b", "rework")
        self.before = commit(folder, {NOTES: "NOTE = 2\n"})
        self.culprit = commit(folder, {CODE: WRONG}, "Rework add (#12)")
        git(folder, "checkout", "--quiet", "main")
        commit(folder, {"README": "2\n"})
        git(folder, "merge", "--quiet", "--no-ff", "--message", "Merge pull request #13 from a/b", "rework")
        self.merge = git(folder, "rev-parse", "HEAD")
        self.released = commit(folder, {NOTES: "NOTE = 3\n"})
        git(folder, "tag", "v2.0.0")
        self.head = commit(folder, {NOTES: "NOTE = 4\n"})


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in make_index(tmp_path, {}).items():
        monkeypatch.setenv(name, value)
    for version, code in {"1.0.0": GOOD, "2.0.0": WRONG}.items():
        make_wheel(tmp_path / "index", "tinyc", version, extra_files={CODE: code.encode()})
    monkeypatch.setattr(known_layouts, "layouts", lambda: (LAYOUT,))
    monkeypatch.setattr(backends, "compilers", lambda: (BACKEND, "onnxruntime"))
    # The smoke test has other models than x + y.
    monkeypatch.setattr(commit_toolchain, "smoke_test", import_alone)
    return Repository(tmp_path / "git" / "octo" / "tinyc.git")


OVERLAY = ToolchainConfig(provisioner=["overlay"])


def bisect(
    folder: Path, head: str, base: str = "", chosen: ToolchainConfig = OVERLAY, version: str = "2.0.0"
) -> tuple[Job, Bug]:
    """The job after it was done for a bug that a campaign from base to head found.

    version  of what the campaign's build of head holds
    """
    settings = Settings(data_dir=folder / "data", git_url=f"file://{folder}/git", workers=1)
    database = Database(settings.database_url)
    Base.metadata.create_all(database.engine)
    Corpus(settings.data_dir / "corpus").add(CASE)
    with database.transaction() as session:
        _add_bug(session, head, base, chosen, version)
        jobs.enqueue(session, "bisect", TARGET, "bisect:1", now(), bug_id=1, arguments={})
    services = campaign_services(settings)
    queue = JobQueue(database, settings, services, Lane.LONG, backoff=(), reply=post_job_reply)
    assert Worker(queue).run_once()
    with database.reading() as session:
        job, bug = jobs.of_key(session, "bisect:1"), session.get_one(Bug, 1)
    database.close()
    assert job is not None
    assert job.state == "done", job.reason
    return job, bug


def _add_bug(session: Any, head: str, base: str, chosen: ToolchainConfig, version: str) -> None:
    config = validate_configuration({"backend": "onnxruntime"}).model_copy(
        update={"backend": BACKEND, "toolchain": chosen}
    )
    assert isinstance(config, RepositoryConfig)
    times = {"created_at": now()}
    toolchain = {"label": "", "python": "", "versions": {"tinyc": version}, "requirements": ["tinyc==2.0.0"]}
    provisioner = chosen.provisioner[0]
    session.add(Toolchain(digest=DIGEST, backend=BACKEND, provisioner=provisioner, **toolchain, **times))
    session.flush()
    campaign = {"state": "done", "config": config.to_json(), "head_toolchain": DIGEST, "updated_at": now()}
    ref = {"ref": "refs/heads/main", "trigger": "push"}
    session.add(Campaign(target=TARGET, head=head, base=base, **ref, **campaign, **times))
    session.flush()
    state = {"state": BugState.REPORTED.value, "issue": 7, "seen": 1}
    seen = {"first_seen": now(), "last_seen": now(), "campaign_id": 1}
    session.add(Bug(target=TARGET, signature="s", title="tinyc: Add is wrong", **state, **seen))
    session.flush()
    kind = Classification.REGRESSION if base else Classification.INCONCLUSIVE
    finding = {"classification": kind.value, "verdict": Verdict.WRONG_RESULT.value}
    session.add(Finding(campaign_id=1, case_id=CASE.id, signature="s", bug_id=1, **finding))


@pytest.mark.slow
def test_first_the_releases_then_the_commits_between_them(repository: Repository, tmp_path: Path) -> None:
    job, bug = bisect(tmp_path, repository.head)
    since = bug.facts["bisection"]["since"]
    assert (since["release"], since["before"]) == (repository.culprit, repository.before)
    releases = since["releases_answer"]
    assert (releases["release"], releases["before"]) == ("2.0.0", "1.0.0")
    named = since["commits"]["release"]
    assert (named["author"], named["pull_request"], named["merge"]) == ("a", 12, repository.merge)
    assert f"commit {repository.culprit[:12]} (Rework add (#12); by a, pull request #12" in job.reason
    section = first_bad_release.render_section(bug)
    assert "### Since which commit" in section
    assert "pull request" in section
    assert f"--repo . --commits {since['range']}" in section


@pytest.mark.slow
def test_a_regression_is_searched_between_base_and_head(repository: Repository, tmp_path: Path) -> None:
    job, bug = bisect(tmp_path, repository.head, base=repository.before)
    since = bug.facts["bisection"]["since"]
    assert (since["release"], since["before"]) == (repository.culprit, repository.before), job.reason
    assert "releases_answer" not in since


@pytest.mark.slow
def test_commits_are_built_where_the_configuration_builds_them(
    repository: Repository, tmp_path: Path
) -> None:
    chosen = ToolchainConfig.model_validate({"provisioner": ["source"], "build": BUILD})
    _, bug = bisect(tmp_path, repository.head, chosen=chosen, version="2.0.dev0+gabc1234")
    since = bug.facts["bisection"]["since"]
    assert (since["release"], since["before"]) == (repository.culprit, repository.before)
    assert {row["provisioner"] for row in since["probed"]} == {"source"}
    assert since["releases_answer"]["range"] == "tinyc:0..2.0", "what a commit was built as is no release"
    assert "Each commit was built by the commands of the configuration" in first_bad_release.render_section(
        bug
    )


@pytest.mark.slow
def test_a_regression_is_built_between_base_and_head(repository: Repository, tmp_path: Path) -> None:
    chosen = ToolchainConfig.model_validate({"provisioner": ["source"], "build": BUILD})
    job, bug = bisect(tmp_path, repository.head, base=repository.before, chosen=chosen, version="1.0")
    since = bug.facts["bisection"]["since"]
    assert (since["release"], since["before"]) == (repository.culprit, repository.before), job.reason
    assert {row["provisioner"] for row in since["probed"]} == {"source"}
    assert "releases_answer" not in since
