"""A regression test as a pull request: asked for in an issue, opened as a draft, closed, never again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.store import campaigns, proposals, targets
from bot.store.models import Proposal, ProposalState
from tests.github import app_installations
from tests.github.repository_double import RepositoryDouble
from tests.github.state import Issue
from tests.scenarios.deployment import POLL_S, TIMEOUT_S, Deployment
from tests.scenarios.fake_toolchain import BAD, GOOD, configured
from tests.support.live_service import wait_for

REPOSITORY = "a_fork_gets_the_branch_where_somebody_asked_for_tests"  # that of the test
FORK = f"bots/{REPOSITORY}"
_PAST = "2020-01-01T00:00:00+00:00"
WANTED = "proposals:\n  enabled: true\n"


@pytest.fixture(scope="module")
def shared_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    forks = f"octo/{REPOSITORY}={FORK}"
    with Deployment(tmp_path_factory.mktemp("scenarios"), ASSAY_PROPOSAL_FORKS=forks) as made:
        yield made


@pytest.fixture
def issue(deployment: Deployment, repository: RepositoryDouble) -> Issue:
    """The issue of a bug that was fixed; ada may write, and the App may write contents."""
    repository.collaborator("ada", "write")
    permissions = deployment.hub.installation("octo").permissions | {"contents": "write"}
    deployment.hub.accept("octo", **permissions)
    push(deployment, repository, BAD)
    push(deployment, repository, GOOD)
    (found,) = [one for one in repository.issues if "Add" in one.title]
    return found


def push(deployment: Deployment, repository: RepositoryDouble, release: str, config: str = WANTED) -> None:
    files = {"requirements.txt": f"openvino=={release}\n", ".github/assay.yml": configured() + config}
    repository.commit(files, message=f"Use {release}{config}")
    deployment.wait_until_idle()


def ask(
    deployment: Deployment, repository: RepositoryDouble, issue: Issue, command: str = "/assay propose"
) -> str:
    """What is answered to a command."""
    known = {one.id for one in repository.comments(issue.number)}
    repository.comment(issue.number, "ada", command)
    deployment.wait_until_idle()
    answers = [one for one in repository.comments(issue.number) if one.id not in known]
    output = "\n".join(one.body for one in answers if one.author.type == "Bot")
    return output.replace("\\", "").replace("\u200b", "")  # escaped for Markdown


def rows(deployment: Deployment, repository: RepositoryDouble) -> list[Proposal]:
    with deployment.database() as database, database.reading() as session:
        found = [
            one for state in ProposalState for one in proposals.in_state(session, repository.name, state)
        ]
        session.expunge_all()
    return found


def test_a_test_is_proposed_once_and_never_again_after_it_was_closed(
    deployment: Deployment, repository: RepositoryDouble, issue: Issue
) -> None:
    output = ask(deployment, repository, issue)
    assert "test_add_compile of tests/test_compiler_regressions.py passes" in output
    (pull,) = repository.pulls
    assert pull.pull is not None
    assert (pull.pull.draft, pull.pull.base_ref, pull.state) == (True, "main", "open")
    assert "fails in 3 of 3 runs" in str(pull.body)
    assert "passes in 3 of 3 runs" in str(pull.body)
    assert f"/{repository.name}/issues/{issue.number}" in str(pull.body)
    written = repository.record.git.read(pull.pull.head_sha, "tests/test_compiler_regressions.py")
    assert written is not None
    assert b"def test_add_compile():" in written

    assert f"#{pull.number} proposes a test for this bug" in ask(deployment, repository, issue)
    repository.commit({"op.cc": "3\n"}, message="Change op.cc")
    deployment.wait_until_idle()
    output = ask(deployment, repository, pull, "/assay rebase")
    assert "its branch moves to " in output
    (commit,) = repository.record.git.between(repository.head(), repository.head(pull.pull.head_ref))
    assert repository.record.git.read(commit.sha, "tests/test_compiler_regressions.py") == written
    assert f"at {repository.head()[:12]}" in str(pull.body), "the new proof"
    repository.close_pull(pull.number, by="ada")
    deployment.wait_until_idle()
    (row,) = rows(deployment, repository)
    assert (row.state, row.number) == (ProposalState.REFUSED.value, pull.number)
    assert "was closed, so no test is proposed for this bug again" in ask(deployment, repository, issue)
    assert len(repository.pulls) == 1


def test_a_merged_test_that_is_expected_to_fail_loses_its_mark(
    deployment: Deployment, repository: RepositoryDouble, issue: Issue
) -> None:
    ask(deployment, repository, issue)
    (pull,) = repository.pulls
    assert pull.pull is not None
    path = "tests/test_compiler_regressions.py"
    written = (repository.record.git.read(pull.pull.head_sha, path) or b"").decode()
    marked = written.replace("def test_add", "@unittest.expectedFailure\ndef test_add")
    repository.merge_pull(pull.number, by="ada")
    repository.commit({path: f"import unittest\n{marked}"}, message="Expect it to fail")
    deployment.wait_until_idle()
    assert f"#{pull.number} added a test for this bug" in ask(deployment, repository, issue)
    with deployment.database() as database, database.transaction() as session:
        (row,) = proposals.in_state(session, repository.name, ProposalState.MERGED)
        row.proof = row.proof | {"bad": None}  # as of a suite that takes tests of open bugs

    assert "passes on" in ask(deployment, repository, issue)
    other = repository.pulls[-1]
    assert other.pull is not None
    assert (other.title, other.number) != (pull.title, pull.number)
    assert "Expect test_add_compile to pass" in str(other.title)
    assert repository.record.git.read(other.pull.head_sha, path) == f"import unittest\n{written}".encode()

    repository.close_pull(other.number, by="ada")
    deployment.wait_until_idle()
    assert f"#{other.number} was closed" in ask(deployment, repository, issue)


def test_a_fork_gets_the_branch_where_somebody_asked_for_tests(
    deployment: Deployment, repository: RepositoryDouble, issue: Issue
) -> None:
    push(deployment, repository, GOOD, config="")
    assert "proposals: {enabled: true}" in ask(deployment, repository, issue)
    assert (repository.pulls, rows(deployment, repository)) == ([], [])

    fork, hub = repository.fork("bots"), deployment.hub
    assert fork.name == FORK
    with hub.hub.lock:
        app_installations.install(hub.hub, fork.record.owner, [fork.record])
    hub.accept("bots", **hub.hub.permissions | {"contents": "write"})
    push(deployment, repository, GOOD, config=WANTED + "# for the fork\n")
    assert "passes" in ask(deployment, repository, issue)
    (pull,) = repository.pulls
    assert pull.pull is not None
    assert pull.pull.head_repository is fork.record
    assert set(repository.record.git.heads()) == {"main"}
    with deployment.database() as database, database.reading() as session:
        assert campaigns.newest(session, FORK, "") is None, "a fork for proposed tests is not tested"


def test_a_scheduled_campaign_offers_tests_of_passing_cases_once(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    deployment.hub.accept("octo", **deployment.hub.installation("octo").permissions | {"contents": "write"})
    nightly = "schedules:\n  nightly:\n    cron: 0 3 * * *\n"
    push(deployment, repository, GOOD, WANTED + "  coverage: true\n" + nightly)
    assert repository.pulls == [], "a push proposes nothing"

    run_schedules(deployment, repository)
    (pull,) = repository.pulls
    assert pull.pull is not None
    assert (pull.pull.draft, pull.pull.base_ref) == (True, "main")
    assert str(pull.title).startswith("Add tests of ")
    assert "passes in 3 of 3 runs" in str(pull.body)
    written = repository.record.git.read(pull.pull.head_sha, "tests/test_compiler_regressions.py") or b""
    batch = rows(deployment, repository)
    assert [written.count(f"def {one.test}():".encode()) for one in batch] == [1] * 5
    assert {one.number for one in batch} == {pull.number}

    repository.commit({"op.cc": "4\n"}, message="Change op.cc")
    deployment.wait_until_idle()
    run_schedules(deployment, repository)
    assert repository.pulls == [pull], "one is open"
    repository.close_pull(pull.number, by="ada")
    deployment.wait_until_idle()
    assert {one.state for one in rows(deployment, repository)} == {ProposalState.REFUSED.value}
    repository.commit({"op.cc": "5\n"}, message="Change op.cc again")
    deployment.wait_until_idle()
    run_schedules(deployment, repository)
    others = [one for one in rows(deployment, repository) if one.number != pull.number]
    assert others
    assert not {one.test for one in others} & {one.test for one in batch}


def run_schedules(deployment: Deployment, repository: RepositoryDouble) -> None:
    """Has the schedules of a repository be due, and waits until their campaigns and jobs have ended."""
    with deployment.database() as database, database.transaction() as session:
        target = targets.find(session, repository.name)
        assert target is not None
        assert target.schedules
        target.schedules = [one | {"next": _PAST} for one in target.schedules]

    def started() -> bool:
        with deployment.rows.reading() as session:
            target = targets.find(session, repository.name)
            return target is not None and all(one["next"] != _PAST for one in target.schedules)

    wait_for(started, "the schedules to start", POLL_S, TIMEOUT_S)
    deployment.wait_until_idle()
