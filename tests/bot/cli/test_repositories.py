"""What `--repo` takes: a folder, bare or with a working tree, or the address of a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.common.repositories import open_repository
from bot.errors import RefusalError, UsageError
from bot.settings import Settings
from tests.bot.toolchains.test_overlay import commit, git


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with a tag, a branch that leads on, and a commit that only a pull request has."""
    folder = tmp_path / "server" / "octo" / "tvm.git"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "uploadpack.allowFilter", "true")  # as on GitHub
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(folder, {"a.txt": "1"})
    git(folder, "tag", "--annotate", "--message", "x", "v1.0")
    commit(folder, {"a.txt": "2"})
    git(folder, "checkout", "--quiet", "-b", "topic")
    commit(folder, {"a.txt": "3"})
    git(folder, "update-ref", "refs/pull/7/head", "HEAD")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "branch", "--quiet", "-D", "topic")
    return folder


@pytest.mark.parametrize(
    ("revision", "text"),
    [
        ("HEAD", b"2"),
        ("main", b"2"),
        ("refs/heads/main", b"2"),
        ("main~1", b"1"),
        ("main^", b"1"),
        ("v1.0", b"1"),
        ("refs/pull/7/head", b"3"),
        ("refs/pull/7/head~2", b"1"),
    ],
)
def test_a_repository_on_a_server_has_its_revisions_by_name(
    upstream: Path, tmp_path: Path, revision: str, text: bytes
) -> None:
    address = f"file://{upstream.with_suffix('')}"
    repository = open_repository(address, Settings(data_dir=tmp_path / "data"))
    sha = repository.resolve(revision)
    assert sha == git(upstream, "rev-parse", f"{revision}^{{commit}}")
    assert repository.read("", sha, "a.txt") == text


def test_commits_of_a_server_are_found_by_their_first_digits(upstream: Path, tmp_path: Path) -> None:
    repository = open_repository(f"file://{upstream}", Settings(data_dir=tmp_path / "data"))
    sha = git(upstream, "rev-parse", "HEAD~1")
    assert repository.resolve(sha[:10]) == sha
    assert repository.parent(git(upstream, "rev-parse", "HEAD")) == sha
    head = repository.resolve("HEAD")
    assert repository.changed_files("", sha, head) == ("a.txt",)
    assert repository.default_branch("") == "main"


def test_an_update_of_a_branch_is_seen(upstream: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    before = open_repository(f"file://{upstream}", settings).resolve("main")
    commit(upstream, {"a.txt": "4"})
    after = open_repository(f"file://{upstream}", settings).resolve("main")
    assert (before, after) == (git(upstream, "rev-parse", "HEAD~1"), git(upstream, "rev-parse", "HEAD"))


@pytest.mark.parametrize(
    "revision", ["nowhere", "v2.0", "abcdef1", "main~9", "-x", "a b", "main^{tree}", ":/x"]
)
def test_a_revision_that_a_server_lacks_is_a_mistake(upstream: Path, tmp_path: Path, revision: str) -> None:
    repository = open_repository(f"file://{upstream}", Settings(data_dir=tmp_path / "data"))
    with pytest.raises(UsageError, match=r"no branch, tag or commit|has no commit|is no revision"):
        repository.resolve(revision)


@pytest.mark.parametrize(
    "place", ["/nowhere/at/all", "git@github.com:apache/tvm.git", "https://github.com/apache"]
)
def test_a_place_that_is_no_repository_is_a_mistake(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match=f"--repo {place}: .*https://github.com/"):
        open_repository(place, Settings(data_dir=tmp_path / "data"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "http://git.example.org/octo/tvm",
            r"--repo http://git\.example\.org/octo/tvm: not read over http.*"
            r"write https://git\.example\.org/octo/tvm, or clone it and give the folder",
        ),
        ("https://ada:s3cret@git.example.org/octo/tvm", r"git\.example\.org holds a user name .* clone it"),
        ("http://s3cret@127.0.0.1/octo/tvm", r"127\.0\.0\.1 holds a user name .* clone it"),
        ("https://[::1/octo/tvm", r"--repo https://\[::1/octo/tvm: no address"),
    ],
)
def test_an_address_that_is_not_read_is_refused_in_words_of_the_desk(
    tmp_path: Path, place: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        open_repository(place, Settings(data_dir=tmp_path / "data"))
    assert "ASSAY_" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert not (tmp_path / "data").exists()


def test_a_server_without_the_repository_refuses(upstream: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match="octo/gone cannot be read"):
        open_repository(f"file://{upstream.parent}/gone", Settings(data_dir=tmp_path / "data"))


def test_without_a_name_the_newest_commit_or_the_working_tree_is_tested(
    upstream: Path, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    assert open_repository(f"file://{upstream}", settings).newest == "HEAD"
    assert open_repository(str(upstream), settings).newest == "WORKTREE"
    git(upstream, "clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    bare = open_repository(str(tmp_path / "bare"), settings)
    assert bare.resolve(bare.newest) == git(upstream, "rev-parse", "HEAD")
