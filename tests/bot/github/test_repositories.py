"""Real git repositories, mirrored; and everything that may be wrong with them."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.errors import InfrastructureError, RefusalError, UsageError
from bot.github import repositories
from bot.github.git import Git
from bot.github.repositories import Repositories

ZERO = "0" * 40


class Upstream:
    """A git repository that people push to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=trunk")
        self.git("config", "uploadpack.allowFilter", "true")  # as on GitHub

    def git(self, *arguments: str) -> str:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": "x@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "server" / "Owner" / "name")


@pytest.fixture
def mirrors(tmp_path: Path) -> Repositories:
    return Repositories(f"file://{tmp_path}/server", tmp_path / "git")


TARGET = "Owner/name"


def mirror_path(tmp_path: Path) -> Path:
    return tmp_path / "git" / "owner" / "name.git"


def test_files_are_read_at_any_commit(upstream: Upstream, mirrors: Repositories) -> None:
    first = upstream.commit(requirements_txt="openvino==2023.1.0\n")
    second = upstream.commit(requirements_txt="openvino==2024.0.0\n", ci__pins_txt="x")
    assert mirrors.read(TARGET, first, "requirements.txt") == b"openvino==2023.1.0\n"
    assert mirrors.read(TARGET, second, "requirements.txt") == b"openvino==2024.0.0\n"
    assert mirrors.read(TARGET, second, "ci/pins.txt") == b"x"
    assert mirrors.read(TARGET, first, "ci/pins.txt") is None
    third = upstream.commit(requirements_txt="openvino==2025.0.0\n")
    assert mirrors.read(TARGET, third, "requirements.txt") == b"openvino==2025.0.0\n"


def test_a_server_that_cannot_filter_serves_too(upstream: Upstream, mirrors: Repositories) -> None:
    upstream.git("config", "uploadpack.allowFilter", "false")
    sha = upstream.commit(a_txt="a")
    assert mirrors.read(TARGET, sha, "a.txt") == b"a"


def test_what_is_here_is_read_without_the_server(
    upstream: Upstream, mirrors: Repositories, tmp_path: Path
) -> None:
    sha = upstream.commit(a_txt="a")
    mirrors.read(TARGET, sha, "a.txt")
    shutil.rmtree(tmp_path / "server")
    assert mirrors.read(TARGET, sha, "a.txt") == b"a"


def test_a_bare_repository_by_its_git_name(upstream: Upstream, mirrors: Repositories, tmp_path: Path) -> None:
    sha = upstream.commit(a_txt="a")
    bare = tmp_path / "server" / "Owner" / "bare.git"
    upstream.git("clone", "--quiet", "--bare", ".", str(bare))
    assert mirrors.read("Owner/bare", sha, "a.txt") == b"a"


def test_only_regular_files_are_read(upstream: Upstream, mirrors: Repositories) -> None:
    (upstream.folder / "link").symlink_to("/etc/passwd")
    (upstream.folder / "a*").write_text("star")
    (upstream.folder / "ü b").write_text("umlaut")
    sha = upstream.commit(folder__a="x", abc="y")
    assert mirrors.read(TARGET, sha, "link") is None
    assert mirrors.read(TARGET, sha, "folder") is None
    assert mirrors.read(TARGET, sha, "a*") == b"star"
    assert mirrors.read(TARGET, sha, "ü b") == b"umlaut"
    assert mirrors.read(TARGET, sha, ":(top)abc") is None


def test_large_files_are_refused(
    upstream: Upstream, mirrors: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "MAX_FILE_BYTES", 5)
    sha = upstream.commit(large_txt="123456", small_txt="12345")
    assert mirrors.read(TARGET, sha, "small.txt") == b"12345"
    with pytest.raises(UsageError, match=r"large.txt of Owner/name is 6 bytes long; at most 5 are read"):
        mirrors.read(TARGET, sha, "large.txt")


def test_commits_that_are_there_and_not(upstream: Upstream, mirrors: Repositories) -> None:
    sha = upstream.commit(a_txt="a")
    assert mirrors.has(TARGET, sha)
    assert not mirrors.has(TARGET, ZERO)
    blob = upstream.git("rev-parse", "HEAD:a.txt")
    assert not mirrors.has(TARGET, blob)
    with pytest.raises(RefusalError, match=f"{ZERO}"):
        mirrors.read(TARGET, ZERO, "a.txt")


def test_a_commit_that_no_branch_leads_to_is_found(upstream: Upstream, mirrors: Repositories) -> None:
    sha = upstream.commit(a_txt="lost")
    upstream.git("commit", "--quiet", "--amend", "--message=y")
    assert mirrors.read(TARGET, sha, "a.txt") == b"lost"


def test_changed_files(upstream: Upstream, mirrors: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    base = upstream.commit(a_txt="a", b_txt="b", c_txt="c")
    (upstream.folder / "b.txt").rename(upstream.folder / "d.txt")
    head = upstream.commit(a_txt="A", src__x="x")
    assert mirrors.changed_files(TARGET, base, head) == ("a.txt", "b.txt", "d.txt", "src/x")
    assert mirrors.changed_files(TARGET, head, head) == ()
    monkeypatch.setattr(repositories, "MAX_CHANGED_FILES", 2)
    assert mirrors.changed_files(TARGET, base, head) == ("a.txt", "b.txt")


def test_a_change(upstream: Upstream, mirrors: Repositories, tmp_path: Path) -> None:
    """Only what differs is fetched; then the server is not needed any more."""
    base = upstream.commit(op_py="a\nb\nc\n", same_py="x\n", gone_py="y\n")
    upstream.git("rm", "--quiet", "gone.py")
    head = upstream.commit(op_py="a\nB\nc\nd\n", come_py="z\n")
    first = mirrors.change(TARGET, base, head)
    files = {file.pop("path"): file for file in first["files"]}
    plain = {"old_path": None, "binary": False}
    assert files == {
        "op.py": plain | {"old": "a\nb\nc\n", "new": "a\nB\nc\nd\n", "hunks": [[2, 1, 2, 1], [3, 0, 4, 1]]},
        "gone.py": plain | {"old": "y\n", "new": None, "hunks": [[1, 1, 0, 0]]},
        "come.py": plain | {"old": None, "new": "z\n", "hunks": [[0, 0, 1, 1]]},
    }
    assert (first["base"], first["head"], first["truncated"]) == (base, head, False)
    shutil.rmtree(tmp_path / "server")
    assert mirrors.change(TARGET, base, head)["head"] == head


def test_a_change_from_a_server_that_cannot_filter(upstream: Upstream, mirrors: Repositories) -> None:
    upstream.git("config", "uploadpack.allowFilter", "false")
    base, head = upstream.commit(a_py="1\n"), upstream.commit(a_py="2\n")
    [file] = mirrors.change(TARGET, base, head)["files"]
    assert (file["old"], file["new"], file["hunks"]) == ("1\n", "2\n", [[1, 1, 1, 1]])


def test_a_change_between_commits_that_are_not_there(upstream: Upstream, mirrors: Repositories) -> None:
    head = upstream.commit(a_py="1\n")
    with pytest.raises(RefusalError):
        mirrors.change(TARGET, "f" * 40, head)


def test_the_default_branch(upstream: Upstream, mirrors: Repositories) -> None:
    with pytest.raises(RefusalError, match="is empty; push a commit first"):
        mirrors.default_branch(TARGET)
    upstream.commit(a_txt="a")
    assert mirrors.default_branch(TARGET) == "trunk"


def test_a_repository_that_is_gone(upstream: Upstream, mirrors: Repositories) -> None:
    for call in (lambda: mirrors.has("Owner/gone", ZERO), lambda: mirrors.default_branch("Owner/gone")):
        with pytest.raises(RefusalError, match=r"Owner/gone cannot be read from file://.*gone or private"):
            call()


@pytest.mark.parametrize(
    "damage",
    [
        "rm -r objects",
        "rm -r refs",
        "rm HEAD",
        "echo x > HEAD",
        "echo x > packed-refs",
        "echo '[' > config",
        "find objects -type f -exec truncate -s 3 {} +",
        "find objects -type f -exec sh -c 'echo x > $0' {} ';'",
    ],
)
def test_a_damaged_mirror_is_made_anew(
    damage: str, upstream: Upstream, mirrors: Repositories, tmp_path: Path
) -> None:
    sha = upstream.commit(a_txt="a")
    mirrors.read(TARGET, sha, "a.txt")
    subprocess.run(["chmod", "-R", "u+w", str(mirror_path(tmp_path))], check=True)
    subprocess.run(["sh", "-c", damage], cwd=mirror_path(tmp_path), check=True)
    assert mirrors.read(TARGET, sha, "a.txt") == b"a"
    later = upstream.commit(a_txt="b")
    assert mirrors.read(TARGET, later, "a.txt") == b"b"


def test_half_a_mirror_is_made_anew(upstream: Upstream, mirrors: Repositories, tmp_path: Path) -> None:
    sha = upstream.commit(a_txt="a")
    partial = mirror_path(tmp_path).with_suffix(".partial")
    partial.mkdir(parents=True)
    (partial / "HEAD").write_text("half")
    assert mirrors.read(TARGET, sha, "a.txt") == b"a"
    assert not partial.exists()


def test_threads_share_a_mirror(upstream: Upstream, mirrors: Repositories) -> None:
    shas = [upstream.commit(a_txt=str(number)) for number in range(4)]
    read: dict[str, bytes | None] = {}
    barrier = threading.Barrier(len(shas))

    def use(sha: str) -> None:
        barrier.wait()
        read[sha] = mirrors.read(TARGET, sha, "a.txt")

    threads = [threading.Thread(target=use, args=(sha,)) for sha in shas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert read == {sha: str(number).encode() for number, sha in enumerate(shas)}


def test_hooks_and_settings_of_this_machine_are_not_used(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap, proof = tmp_path / "home", tmp_path / "proof"
    hooks = trap / "hooks"
    hooks.mkdir(parents=True)
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {proof}\n")
        (hooks / name).chmod(0o755)
    (trap / ".gitconfig").write_text(f"[core]\n hooksPath = {hooks}\n")
    monkeypatch.setenv("HOME", str(trap))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(trap / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    sha = upstream.commit(a_txt="a")
    assert Repositories(f"file://{tmp_path}/server", tmp_path / "git").read(TARGET, sha, "a.txt") == b"a"
    assert not proof.exists()


@pytest.mark.parametrize(
    "target",
    ["", "name", "a/b/c", "../x", "a/..", "a/.", "-a/b", "a/b.git", "a/b.lock", "a b/c", "a/b\n", "ü/x"],
)
def test_no_targets(target: str, mirrors: Repositories) -> None:
    for call in (lambda: mirrors.has(target, ZERO), lambda: mirrors.default_branch(target)):
        with pytest.raises(UsageError, match="write owner/name"):
            call()


@pytest.mark.parametrize(
    "sha", ["", "HEAD", "--upload-pack=x", "0" * 39, "0" * 41, "A" * 40, "0" * 40 + "\n"]
)
def test_no_commits(sha: str, mirrors: Repositories) -> None:
    for call in (lambda: mirrors.has(TARGET, sha), lambda: mirrors.changed_files(TARGET, sha, ZERO)):
        with pytest.raises(UsageError, match="is no commit"):
            call()


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\nb", "a\0b", "x" * 5000]
)
def test_no_paths(path: str, mirrors: Repositories) -> None:
    with pytest.raises(UsageError, match="is no path inside a repository"):
        mirrors.read(TARGET, ZERO, path)


@pytest.mark.parametrize(
    "url",
    ["ssh://git@github.com", "git://github.com", "http://github.com", "ext::sh -c x", "/srv/git", "-x", "",
     "https://user:pw@github.com"],
)  # fmt: skip
def test_no_servers(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ASSAY_GIT_URL"):
        Repositories(url, tmp_path)


class FailingGitServer(http.server.ThreadingHTTPServer):
    """A server that answers everything with one status and keeps what it was told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ErrorHandler)
        self.status = 404
        self.authorizations: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class ErrorHandler(http.server.BaseHTTPRequestHandler):
    server: FailingGitServer

    def do_GET(self) -> None:
        self.server.authorizations.append(self.headers.get("Authorization"))
        self.send_response(self.server.status)
        if self.server.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, *_: object) -> None:
        pass


@pytest.fixture
def git_server() -> Iterator[FailingGitServer]:
    with FailingGitServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_forge_that_says_no(status: int, git_server: FailingGitServer, tmp_path: Path) -> None:
    git_server.status = status
    with pytest.raises(RefusalError, match="gone or private, or Assay is not installed there"):
        Repositories(git_server.url, tmp_path).has(TARGET, ZERO)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_forge_in_trouble(status: int, git_server: FailingGitServer, tmp_path: Path) -> None:
    git_server.status = status
    with pytest.raises(InfrastructureError, match="check the network"):
        Repositories(git_server.url, tmp_path).has(TARGET, ZERO)


def test_a_forge_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can meanwhile
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(InfrastructureError, match="check the network"):
            Repositories(url, tmp_path).has(TARGET, ZERO)


def test_the_token_travels_in_a_header_and_in_no_error(git_server: FailingGitServer, tmp_path: Path) -> None:
    with pytest.raises(RefusalError) as caught:
        Repositories(git_server.url, tmp_path, token="s3cret").has(TARGET, ZERO)
    assert git_server.authorizations[0] == "Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0"  # x-access-token:s3cret
    assert "s3cret" not in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]


def test_the_token_is_on_no_command_line(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A git of our own, first on the path, which notes how it was called.
    noted = tmp_path / "noted"
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        f"#!{sys.executable}\nimport os, sys\nopen({str(noted)!r}, 'w').write(repr(sys.argv))\nsys.exit(1)\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(InfrastructureError):
        Git("https://github.com", "s3cret").remote(TARGET, "fetch", cwd=tmp_path)
    assert "fetch" in noted.read_text()
    assert "s3cret" not in noted.read_text()


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(InfrastructureError, match=r"cannot start git: .*; install it"):
        Repositories("file:///srv", tmp_path / "git").has(TARGET, ZERO)


def test_commits_that_change_a_file_by_first_parents(upstream: Upstream, mirrors: Repositories) -> None:
    base = upstream.commit(requirements_txt="x==1\n")
    upstream.commit(README_md="words\n")
    upstream.git("checkout", "--quiet", "-b", "side")
    upstream.commit(requirements_txt="x==2\n")
    upstream.git("checkout", "--quiet", "trunk")
    changed = upstream.commit(pyproject_toml="[project]\n")
    upstream.git("merge", "--quiet", "--no-ff", "--message=merge", "side")
    merge = upstream.git("rev-parse", "HEAD")
    head = upstream.commit(README_md="more words\n")
    paths = ("requirements.txt", "pyproject.toml")
    assert mirrors.commits(TARGET, base, head, paths) == (changed, merge)
    assert mirrors.commits(TARGET, head, head, paths) == ()
    with pytest.raises(UsageError, match="is no path"):
        mirrors.commits(TARGET, base, head, ("../etc/passwd",))


def test_a_commit_of_a_fork_is_on_no_branch(upstream: Upstream, mirrors: Repositories) -> None:
    """The server hands it out under the repository's own address all the same."""
    first = upstream.commit(a_txt="1")
    branch = upstream.git("symbolic-ref", "--short", "HEAD")
    upstream.git("checkout", "--quiet", "--detach")
    fork = upstream.commit(a_txt="2")
    upstream.git("update-ref", "refs/pull/1/head", fork)
    upstream.git("checkout", "--quiet", branch)
    assert mirrors.read(TARGET, fork, "a.txt") == b"2"
    assert [mirrors.is_on_branch(TARGET, sha) for sha in (first, fork)] == [True, False]
    upstream.git("update-ref", "refs/heads/topic", fork)
    assert mirrors.is_on_branch(TARGET, fork)
    upstream.git("update-ref", "-d", "refs/heads/topic")
    assert not mirrors.is_on_branch(TARGET, fork)
