"""The overlay provisioner on a repository and an environment made here: a package `tvm` of three files."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import ProvisionError, UsageError
from bot.github.local_repository import WORKTREE, LocalRepository
from bot.toolchains import ReadyToolchain, ToolchainSpec, overlay, registry
from bot.toolchains.layouts import layouts
from bot.toolchains.overlay import BrokenSourcesError, SourceCommit, find_layout, release_series

MARKER = "python/tvm/relax/frontend/onnx/onnx_frontend.py"
WHEEL = ToolchainSpec("release", "tvm", ("apache-tvm==0.26.0",), "apache-tvm 0.26.0")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, files: dict[str, str | None], message: str = "change") -> str:
    """Writes files (None deletes one) and commits them; the commit's id."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, {MARKER: "NAME = 'released'\n", "python/tvm/__init__.py": "", "python/tvm/old.py": "1\n"})
    git(folder, "tag", "v0.26.0")
    return folder


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of the release, as the `release` provisioner would make it; its site-packages."""
    environment = tmp_path / "wheel"
    site = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    package = site / "tvm"
    (package / "relax" / "frontend" / "onnx").mkdir(parents=True)
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    for name, text in {
        "__init__.py": "",
        "old.py": "1\n",
        "_version.py": "version = '0.26.0'\n",
        "libtvm.so": "native",
        "relax/frontend/onnx/onnx_frontend.py": "NAME = 'released'\n",
    }.items():
        (package / name).write_text(text)

    class Release:
        def provision(self, spec: ToolchainSpec, _data_dir: Path, _progress: object) -> ReadyToolchain:
            python = str(environment / "bin" / "python")
            return ReadyToolchain(spec, spec.digest, python, {"python": "3.11"}, spec.requirements)

    real = registry.get
    monkeypatch.setattr(registry, "get", lambda name: Release() if name == "release" else real(name))
    return site


def make(repository: LocalRepository, sha: str, data_dir: Path) -> tuple[ReadyToolchain, Path]:
    source = SourceCommit(repository, sha)
    spec = overlay.overlay().spec(source, find_layout(source), WHEEL)
    data_dir.mkdir(exist_ok=True)
    (data_dir / "toolchains").mkdir(exist_ok=True)
    ready = overlay.overlay().provision(spec, data_dir, lambda _note: None)
    return ready, next(Path(ready.python).parents[1].glob("lib/python3*/site-packages")) / "tvm"


def test_sources_are_laid_over_the_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    head = commit(
        checkout, {MARKER: "NAME = 'head'\n", "python/tvm/new.py": "2\n", "python/tvm/old.py": None}
    )
    ready, package = make(LocalRepository(checkout, tmp_path / "objects"), head, tmp_path / "data")
    assert (package / "relax/frontend/onnx/onnx_frontend.py").read_text() == "NAME = 'head'\n"
    assert (package / "new.py").exists()
    assert not (package / "old.py").exists(), "deleted since the release"
    assert (package / "_version.py").exists(), "made by the build"
    assert (package / "libtvm.so").stat().st_ino == (wheel / "tvm" / "libtvm.so").stat().st_ino
    assert (wheel / "tvm" / "relax/frontend/onnx/onnx_frontend.py").read_text() == "NAME = 'released'\n"
    assert ready.versions["sources"] == head
    assert ready.requirements == WHEEL.requirements


def test_commits_with_equal_sources_are_one_toolchain(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    first = commit(checkout, {MARKER: "NAME = 1\n"})
    docs = commit(checkout, {"README.md": "words\n"})
    other = commit(checkout, {MARKER: "NAME = 2\n"})
    digests = [make(repository, sha, tmp_path / "data")[0].digest for sha in (first, docs, other)]
    assert digests[0] == digests[1] != digests[2]
    assert replace(WHEEL, overlay=(("a", "b"),)).digest != WHEEL.digest


def test_sources_that_cannot_be_imported(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    head = commit(checkout, {"python/tvm/__init__.py": "raise ValueError('no such native object')\n"})
    with pytest.raises(BrokenSourcesError, match="no such native object"):
        make(LocalRepository(checkout, tmp_path / "objects"), head, tmp_path / "data")
    assert not list((tmp_path / "data" / "toolchains").glob("*/assay-toolchain.json"))


def test_a_wheel_without_the_folder(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    (wheel / "tvm").rename(wheel / "other")
    with pytest.raises(ProvisionError, match="has no folder tvm"):
        make(
            LocalRepository(checkout, tmp_path / "objects"),
            git(checkout, "rev-parse", "HEAD"),
            tmp_path / "d",
        )


def test_the_working_tree_is_a_commit(checkout: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    (checkout / MARKER).write_text("NAME = 'edited'\n")
    (checkout / "python/tvm/untracked.py").write_text("3\n")
    status = git(checkout, "status", "--porcelain")
    sha = repository.resolve(WORKTREE)
    assert repository.resolve(WORKTREE) == sha, "the same files are the same commit"
    assert repository.read("", sha, MARKER) == b"NAME = 'edited'\n"
    assert repository.read("", sha, "python/tvm/untracked.py") == b"3\n"
    assert repository.parent(sha) == git(checkout, "rev-parse", "HEAD")
    assert set(repository.changed_paths(repository.parent(sha), sha)) == {MARKER, "python/tvm/untracked.py"}
    assert git(checkout, "status", "--porcelain") == status, "the repository is left as it was"


def test_what_a_repository_is_asked_for(checkout: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    head = repository.resolve("HEAD")
    files = list(repository.files(head, "python/tvm"))
    contents = dict(
        zip((one.path for one in files), repository.blobs([one.blob for one in files]), strict=True)
    )
    assert contents["python/tvm/old.py"] == b"1\n"
    assert repository.tree(head, "python/tvm") != repository.tree(head, "python") != ""
    assert repository.tree(head, "nothing") == ""
    assert repository.tag("v0.26.0") == head
    assert repository.tag("v9") == ""
    assert repository.newest_tags(head) == ("v0.26.0",)
    with pytest.raises(UsageError, match="has no commit 'nothing'"):
        repository.resolve("nothing")
    with pytest.raises(UsageError, match="not a git repository"):
        LocalRepository(tmp_path, tmp_path / "objects")


def test_the_series_of_a_commit(checkout: Path, tmp_path: Path) -> None:
    source = SourceCommit(LocalRepository(checkout, tmp_path / "objects"), git(checkout, "rev-parse", "HEAD"))
    assert release_series(source, find_layout(source)) == (0, 26)
    torch = next(one for one in layouts() if one.package == "torch")
    assert torch.series_of("2.14.0a0\n", of_tag=False) == (2, 14)
    assert torch.series_of("none", of_tag=False) is None


def test_layouts_say_what_they_carry() -> None:
    tvm = next(one for one in layouts() if one.backend == "tvm")
    frontends = tvm.variants()[1]
    assert not tvm.is_out_of_reach("python/tvm/relax/op.py")
    assert frontends.is_out_of_reach("python/tvm/relax/op.py")
    assert not frontends.is_out_of_reach(MARKER)
    assert tvm.is_out_of_reach("src/relax/op.cc")
    assert not tvm.is_out_of_reach("docs/index.rst")


def test_no_known_compiler(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    git(folder, "init", "--quiet")
    sha = commit(folder, {"README.md": "words\n"})
    with pytest.raises(UsageError, match="no commit of a known compiler's repository"):
        find_layout(SourceCommit(LocalRepository(folder, tmp_path / "objects"), sha))
