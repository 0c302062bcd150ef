"""Pull requests of proposed tests: branch, commit and pull request, each made exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.limits import marker
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import OutboxQueue
from bot.github.rate_limiter import RateLimiter
from bot.store.database import Database
from bot.store.models import Effect
from bot.store.outbox import EffectDraft
from bot.worker import Worker
from tests.bot.github.outbox_kit import campaign, database, post, row
from tests.github import app_installations
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble
from tests.github.server import Fault

NAME, KEY, BRANCH, PATH = "octo/compiler", "p" * 32, "assay/bug-1-test-relu-nan", "tests/test_relu.py"
REBASE = "r" * 32
TEST = "def test_relu_nan():\n    assert True\n"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path) as made:
        yield made


@pytest.fixture
def repository(github: GitHubDouble) -> RepositoryDouble:
    made = github.repository(NAME)
    made.commit({"op.cc": "1\n", "tests/test_old.py": "def test_old(): pass\n"})
    github.accept("octo", **github.hub.permissions | {"contents": "write"})
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    campaign(made, target=NAME)
    yield made
    made.close()


class Sender:
    """The service's sender; `later` lets its waits and leases pass."""

    def __init__(self, store: Database, github: GitHubDouble, folder: Path) -> None:
        self._late, self._github = timedelta(0), github
        who = Credentials(app_id=github.app_id, private_key=github.private_key)
        self.api = GitHubApi(who, github.url, rate_limiter=RateLimiter(store, gap_s=0))
        queue = OutboxQueue(store, GitHubSink(self.api), self._clock, DryRunSink(folder / "outbox"))
        self._worker = Worker(queue)

    def _clock(self) -> datetime:
        return self._github.hub.world.clock() + self._late

    def drain(self) -> None:
        while self._worker.run_once():
            pass

    def later(self) -> None:
        self._late += timedelta(hours=2)
        self.drain()


@pytest.fixture
def sender(store: Database, github: GitHubDouble, tmp_path: Path) -> Iterator[Sender]:
    made = Sender(store, github, tmp_path)
    yield made
    made.api.close()


def propose(store: Database, repository: RepositoryDouble, **commit: Any) -> None:
    payload = {
        "title": "Add a regression test for NaN of Relu",
        "body": f"Why.\n\n{marker(KEY)}\n",
        "head": BRANCH,
        "base": "main",
        "draft": True,
        "commit": {"parent": repository.head(), "files": {PATH: TEST}, "message": "Add a test"} | commit,
    }
    post(store, EffectDraft("pull_request", KEY, NAME, payload))


def check(repository: RepositoryDouble) -> None:
    """One draft pull request with one commit, which adds the file and leaves the others."""
    (pull,) = repository.pulls
    assert pull.pull is not None
    assert (pull.pull.draft, pull.pull.head_ref, pull.pull.base_ref, pull.state) == (
        True,
        BRANCH,
        "main",
        "open",
    )
    (commit,) = repository.record.git.between(repository.head(), repository.head(BRANCH))
    assert (commit.message, commit.author) == ("Add a test", "assay-test[bot]")
    (file,) = repository.record.git.files(repository.head(), commit.sha)
    assert (file["filename"], file["status"]) == (PATH, "added")
    assert repository.record.git.read(commit.sha, PATH) == TEST.encode()


def test_a_draft_with_one_commit(store: Database, repository: RepositoryDouble, sender: Sender) -> None:
    propose(store, repository)
    sender.drain()
    check(repository)
    there = row(store, KEY)
    assert (there.state, there.number) == ("sent", repository.pulls[0].number)


def test_one_commit_with_several_files(store: Database, repository: RepositoryDouble, sender: Sender) -> None:
    more = {"tests/new/test_elu.py": "def test_elu(): pass\n", "tests/test_old.py": "def test_new(): pass\n"}
    propose(store, repository, files={PATH: TEST} | more)
    sender.drain()
    git = repository.record.git
    (commit,) = git.between(repository.head(), repository.head(BRANCH))
    written = {
        one["filename"]: git.read(commit.sha, str(one["filename"]))
        for one in git.files(repository.head(), commit.sha)
    }
    assert written == {path: text.encode() for path, text in {PATH: TEST, **more}.items()}


def test_a_commit_that_an_older_version_stored_is_made(
    store: Database, repository: RepositoryDouble, sender: Sender
) -> None:
    propose(store, repository)
    with store.transaction() as session:
        stored = session.scalars(select(Effect)).one()
        commit = {key: value for key, value in stored.payload["commit"].items() if key != "files"}
        stored.payload = stored.payload | {"commit": commit | {"path": PATH, "content": TEST}}
    sender.drain()
    check(repository)


def test_who_signs_off_is_the_author(store: Database, repository: RepositoryDouble, sender: Sender) -> None:
    message = "Add a test\n\nSigned-off-by: Ada L <ada@example.org>"
    propose(store, repository, message=message, author={"name": "Ada L", "email": "ada@example.org"})
    sender.drain()
    shown = repository.record.git.run("log", "-1", "--format=%an <%ae>%n%B", BRANCH).strip()
    assert shown == f"Ada L <ada@example.org>\n{message}"


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("path", ["git/trees", "git/commits", "git/refs", "pulls"])
def test_an_interruption_makes_nothing_twice(
    path: str,
    arrived: bool,
    store: Database,
    repository: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    github.faults.append(Fault(0, arrived=arrived, method="POST", path=f"/repos/.*/{path}"))
    propose(store, repository)
    sender.drain()
    assert row(store, KEY).state in ("pending", "sending")
    sender.later()
    check(repository)
    assert row(store, KEY).state == "sent"


def test_what_people_add_to_the_branch_stays(
    store: Database, repository: RepositoryDouble, sender: Sender, github: GitHubDouble
) -> None:
    github.faults.append(Fault(0, method="POST", path="/repos/.*/pulls"))
    propose(store, repository)
    sender.drain()
    theirs = repository.commit({PATH: "def test_better(): pass\n"}, branch=BRANCH, author="ada")
    sender.later()
    assert repository.head(BRANCH) == theirs
    assert len(repository.pulls) == 1


def rebase(store: Database, repository: RepositoryDouble, parent: str) -> None:
    """Posts the branch on a newer commit, in place of the one that it got when the test was proposed."""
    before = row(store, KEY)
    last = before.payload["commit"]
    newer = last | {"parent": repository.head(), "files": {PATH: TEST + "# newer\n"}}
    assert last["parent"] == parent
    payload = before.payload | {
        "number": before.number,
        "body": f"Why, anew.\n\n{marker(REBASE)}\n",
        "commit": newer,
        "replaces": {"commit": last, "body": before.payload["body"]},
    }
    post(store, EffectDraft("branch_rewrite", REBASE, NAME, payload))


@pytest.mark.parametrize("path", ["git/commits", f"git/refs/heads/{BRANCH}", "pulls/1"])
@pytest.mark.parametrize("arrived", [None, True, False])
def test_a_rebase_puts_the_test_on_the_newer_commit(
    arrived: bool | None,
    path: str,
    store: Database,
    repository: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    propose(store, repository)
    sender.drain()
    parent = repository.head()
    newer = repository.commit({"op.cc": "2\n"})
    (pull,) = repository.pulls
    assert path != "pulls/1" or pull.number == 1
    pull.body = f"{pull.body}\r\nA note of ada."
    rebase(store, repository, parent)
    if arrived is not None:
        github.faults.append(Fault(0, arrived=arrived, method="P.*", path=f"/repos/.*/{path}"))
    sender.drain()
    sender.later()
    assert row(store, REBASE).state == "sent"
    (commit,) = repository.record.git.between(newer, repository.head(BRANCH))
    assert commit.message == "Add a test"
    assert repository.record.git.read(commit.sha, PATH) == f"{TEST}# newer\n".encode()
    assert repository.record.git.read(commit.sha, "op.cc") == b"2\n"
    assert pull.body == f"Why, anew.\n\n{marker(REBASE)}\n\nA note of ada."


@pytest.mark.parametrize("amended", [True, False])
def test_a_rebase_keeps_what_people_changed(
    amended: bool, store: Database, repository: RepositoryDouble, sender: Sender
) -> None:
    propose(store, repository)
    sender.drain()
    parent, git = repository.head(), repository.record.git
    if amended:  # the same message on the same parent, with another file
        tree = git.tree_with(git.describe(parent).tree, {PATH: TEST, "more.py": "x = 1\n"})
        git.point(f"refs/heads/{BRANCH}", git.commit_of(tree, [parent], "Add a test", "ada"))
    else:
        repository.commit({PATH: "def test_better(): pass\n"}, branch=BRANCH, author="ada")
    theirs = repository.head(BRANCH)
    repository.commit({"op.cc": "2\n"})
    rebase(store, repository, parent)
    sender.drain()
    assert repository.head(BRANCH) == theirs
    there = row(store, REBASE)
    assert there.state == "failed"
    assert "commits that Assay did not make" in there.reason


def test_one_that_was_closed_meanwhile_is_not_opened_again(
    store: Database, repository: RepositoryDouble, sender: Sender, github: GitHubDouble
) -> None:
    github.faults.append(Fault(0, arrived=True, method="POST", path="/repos/.*/pulls"))
    propose(store, repository)
    sender.drain()
    repository.close_pull(repository.pulls[0].number, by="octo")
    sender.later()
    (pull,) = repository.pulls
    assert pull.state == "closed"
    assert row(store, KEY).number == pull.number


def test_without_the_permission_it_says_which(
    store: Database, repository: RepositoryDouble, sender: Sender, github: GitHubDouble
) -> None:
    github.accept("octo", **github.hub.permissions)
    propose(store, repository)
    sender.drain()
    there = row(store, KEY)
    assert there.state == "failed"
    assert "contents=write" in there.reason
    assert repository.pulls == []


FORK = "assay-forks/compiler"


@pytest.fixture
def fork(github: GitHubDouble, repository: RepositoryDouble) -> RepositoryDouble:
    """A fork that the App may write to; in the target it may not."""
    made = repository.fork("assay-forks")
    with github.hub.lock:
        app_installations.install(github.hub, made.record.owner, [made.record])
    github.accept("assay-forks", **github.hub.permissions | {"contents": "write"})
    github.accept("octo", **github.hub.permissions)
    repository.commit({"op.cc": "2\n"})  # the fork is behind
    return made


def propose_through(fork: str, store: Database, repository: RepositoryDouble) -> None:
    commit = {"parent": repository.head(), "files": {PATH: TEST}, "message": "Add a test"}
    payload = {
        "title": "t",
        "body": f"Why.\n\n{marker(KEY)}\n",
        "head": BRANCH,
        "base": "main",
        "draft": True,
    }
    more = {"maintainer_can_modify": True, "commit": commit, "fork": fork}
    post(store, EffectDraft("pull_request", KEY, NAME, payload | more))


def check_through_fork(repository: RepositoryDouble, fork: RepositoryDouble) -> None:
    """One pull request from the fork, of one commit on the target's head; no branch of ours in the target."""
    (pull,) = repository.pulls
    assert pull.pull is not None
    assert pull.pull.head_repository is fork.record
    assert set(repository.record.git.heads()) == {"main"}
    assert fork.head() == repository.head()
    (commit,) = fork.record.git.between(fork.head(), fork.head(BRANCH))
    assert fork.record.git.read(commit.sha, PATH) == TEST.encode()


@pytest.mark.parametrize("arrived", [None, True, False])
@pytest.mark.parametrize("path", ["merge-upstream", "git/refs", "pulls"])
def test_a_fork_gets_the_branch_once(
    path: str,
    arrived: bool | None,
    store: Database,
    repository: RepositoryDouble,
    fork: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    if arrived is not None:
        github.faults.append(Fault(0, arrived=arrived, method="POST", path=f"/repos/.*/{path}"))
    propose_through(FORK, store, repository)
    sender.drain()
    sender.later()
    check_through_fork(repository, fork)
    assert row(store, KEY).state == "sent"


def test_what_people_add_to_the_forks_branch_stays(
    store: Database,
    repository: RepositoryDouble,
    fork: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    github.faults.append(Fault(0, method="POST", path="/repos/.*/pulls"))
    propose_through(FORK, store, repository)
    sender.drain()
    parent = repository.head()
    theirs = fork.commit({PATH: "def test_better(): pass\n"}, branch=BRANCH, author="ada")
    sender.later()
    repository.commit({"op.cc": "3\n"})
    rebase(store, repository, parent)
    sender.drain()
    assert fork.head(BRANCH) == theirs
    assert "commits that Assay did not make" in row(store, REBASE).reason
    assert len(repository.pulls) == 1


def test_a_rebase_moves_the_forks_branch(
    store: Database, repository: RepositoryDouble, fork: RepositoryDouble, sender: Sender
) -> None:
    propose_through(FORK, store, repository)
    sender.drain()
    parent, newer = repository.head(), repository.commit({"op.cc": "3\n"})
    fork.commit({"own.md": "theirs\n"})  # the fork's branch has diverged: the synchronization merges
    rebase(store, repository, parent)
    sender.drain()
    assert row(store, REBASE).state == "sent", row(store, REBASE).reason
    assert [one.parents for one in fork.record.git.between(newer, fork.head(BRANCH))] == [(newer,)]
    assert fork.record.git.read(fork.head(), "own.md") == b"theirs\n"
    (pull,) = repository.pulls
    assert str(pull.body).startswith("Why, anew.")


@pytest.mark.parametrize(
    ("named", "granted", "said"),
    [
        (FORK, "read", "contents=write"),
        ("nobody/compiler", "write", "install the App in nobody/compiler"),
        ("assay-forks/other", "write", "is no fork of octo/compiler"),
    ],
)
def test_a_fork_that_cannot_be_used_is_refused(
    named: str,
    granted: str,
    said: str,
    store: Database,
    repository: RepositoryDouble,
    fork: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    github.repository("assay-forks/other").commit({"a": "1\n"})
    github.accept("assay-forks", **github.hub.permissions | {"contents": granted})
    propose_through(named, store, repository)
    sender.drain()
    there = row(store, KEY)
    assert (there.state, repository.pulls) == ("failed", [])
    assert said in there.reason
    assert not fork.head(BRANCH)


def test_a_token_for_a_fork_reaches_the_fork_only(
    store: Database,
    repository: RepositoryDouble,
    fork: RepositoryDouble,
    sender: Sender,
    github: GitHubDouble,
) -> None:
    github.accept("octo", **github.hub.permissions | {"contents": "write"})
    propose_through(FORK, store, repository)
    sender.drain()
    check_through_fork(repository, fork)
    pushers = [
        one for one in github.hub.identity.tokens.values() if one.permissions.get("contents") == "write"
    ]
    assert [one.repositories for one in pushers] == [frozenset({fork.record.id})]


def test_a_dry_run_writes_all_requests(tmp_path: Path) -> None:
    made = database(tmp_path)
    campaign(made, mode="dry-run", target=NAME)
    payload = {"title": "t", "body": "b", "head": BRANCH, "base": "main", "draft": True}
    commit = {"parent": "a" * 40, "files": {PATH: TEST}, "message": "m"}
    post(made, EffectDraft("pull_request", KEY, NAME, payload | {"commit": commit}))
    Worker(OutboxQueue(made, DryRunSink(tmp_path / "outbox"))).run_once()
    made.close()
    (written,) = (tmp_path / "outbox").rglob("*.json")
    for path in ("/pulls", "/git/trees", "/git/commits", "/git/refs"):
        assert f'"/repos/{NAME}{path}"' in written.read_text()
