"""The overlay provisioner on a repository and an environment made here: a package `tvm` of three files."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot import toolchains
from bot.commit_files import CommitFiles, TreeSource
from bot.config import RepositoryConfig, parse_config
from bot.config.layouts import layouts
from bot.errors import BrokenSourcesError, CheckUnfinishedError, ConfigError, RunnerError, UsageError
from bot.github.local_repository import WORKTREE, LocalRepository
from bot.github.repositories import Repositories
from bot.toolchains import ReadyToolchain, ToolchainSpec, commit_toolchain, overlay, probe, registry, smoke
from bot.toolchains.commit_toolchain import RECORD
from bot.toolchains.overlay import find_layout, release_series
from tests.support import kills
from tests.support.smoke import import_alone

TARGET = "octo/tvm"
MARKER = "python/tvm/relax/frontend/onnx/onnx_frontend.py"
CONFIG = b"version: 1\nbackend: tvm\ntoolchain: {provisioner: overlay, wheel: 0.26.0}\n"


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

    real = registry.get

    class Release:
        def resolve(self, *arguments: Any) -> ToolchainSpec:
            return real("release").resolve(*arguments)

        def provision(self, spec: ToolchainSpec, _data_dir: Path, _progress: object) -> ReadyToolchain:
            python = str(environment / "bin" / "python")
            return ReadyToolchain(spec, spec.digest, python, {"python": "3.11"}, spec.requirements)

    monkeypatch.setattr(commit_toolchain, "smoke_test", import_alone)
    monkeypatch.setattr(
        registry, "get", lambda name: Release() if name in ("release", "index") else real(name)
    )
    return site


def config() -> RepositoryConfig:
    return parse_config(CONFIG)


def make(
    repository: TreeSource, sha: str, data_dir: Path, *, whole: bool = False
) -> tuple[ReadyToolchain, Path]:
    """The toolchain of a commit, and its package; `whole`: of nothing less than all sources."""
    spec = toolchains.resolve(config(), CommitFiles(repository, TARGET, sha), data_dir)
    spec = next(spec.candidates()) if whole else spec
    ready = toolchains.provision(spec, data_dir, lambda _note: None)
    return ready, next(Path(ready.python).parents[1].glob("lib/python3*/site-packages")) / "tvm"


def test_sources_are_laid_over_the_nightly_wheel_of_base(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightlies = iter(("0.27.0.dev20260801", "0.27.0.dev20260802"))
    monkeypatch.setattr(overlay, "find_nightly", lambda *_: (next(nightlies), "the last one"))
    monkeypatch.setattr(overlay, "nearest_wheels", lambda *_: ("0.26.0",))
    text = "version: 1\nbackend: tvm\ntoolchain: {provisioner: overlay, index: 'https://nightly.example'}\n"
    repository = LocalRepository(checkout, tmp_path / "objects")
    commits = [git(checkout, "rev-parse", "HEAD"), commit(checkout, {MARKER: "NAME = 'head'\n"})]
    base, head = (
        toolchains.resolve(parse_config(text.encode()), CommitFiles(repository, TARGET, sha), tmp_path)
        for sha in commits
    )
    assert [one.requirements[0] for one in base.candidates()] == [
        *["apache-tvm==0.27.0.dev20260801"] * 2,
        *["apache-tvm==0.26.0"] * 2,
    ]
    made = toolchains.provision(base, tmp_path / "data", lambda _note: None)
    like = head.like(made.spec)
    assert like.label == base.label, "what another nightly brought is no change of head's"
    assert (like.requirements, like.origin) == (
        made.spec.requirements,
        (("index", "https://nightly.example"),),
    )
    assert like.digest != made.digest
    record = json.loads((tmp_path / "data" / "toolchains" / made.digest / RECORD).read_text())
    assert record["choice"] == "the last one"


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
    assert ready.requirements[0] == "apache-tvm==0.26.0"
    assert ready.spec.label == "apache-tvm 0.26.0 with python/tvm of the commit"


def test_what_importing_the_release_loads_is_compiled(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    """No worker could write bytecode: each would compile it anew."""
    cached = f"onnx_frontend.{sys.implementation.cache_tag}.pyc"
    cache = Path("relax/frontend/onnx/__pycache__")
    (wheel / "tvm" / cache).mkdir()
    (wheel / "tvm" / cache / cached).write_bytes(b"of the release")
    head = commit(checkout, {MARKER: "NAME = 'head'\n", "python/tvm/relax/frontend/onnx/new.py": "2\n"})
    _, package = make(LocalRepository(checkout, tmp_path / "objects"), head, tmp_path / "data")
    assert [path.name for path in (package / cache).iterdir()] == [cached]
    assert (package / cache / cached).read_bytes().startswith(importlib.util.MAGIC_NUMBER)
    assert (wheel / "tvm" / cache / cached).read_bytes() == b"of the release"


def test_commits_with_equal_sources_are_one_toolchain(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    first = commit(checkout, {MARKER: "NAME = 1\n"})
    docs = commit(checkout, {"README.md": "words\n"})
    formatted = commit(checkout, {MARKER: "# why\nNAME =  (\n    1)\n"})
    other = commit(checkout, {MARKER: "NAME = 2\n"})
    broken = commit(checkout, {"python/tvm/data.txt": "no Python\n", "python/tvm/new.py": "not Python\n"})
    shas = (first, docs, formatted, other, broken)
    digests = [make(repository, sha, tmp_path / "data")[0].digest for sha in shas]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 3


def test_of_a_complete_package_no_file_of_the_wheel_stays(
    checkout: Path, wheel: Path, tmp_path: Path
) -> None:
    commit_files = CommitFiles(
        LocalRepository(checkout, tmp_path / "objects"), TARGET, git(checkout, "rev-parse", "HEAD")
    )
    spec = next(toolchains.resolve(config(), commit_files, tmp_path / "data").candidates())
    whole = replace(spec, overlay=tuple(replace(one, whole=True) for one in spec.overlay))
    ready = toolchains.provision(whole, tmp_path / "data", lambda _note: None)
    package = next(Path(ready.python).parents[1].glob("lib/python3*/site-packages")) / "tvm"
    assert not (package / "libtvm.so").exists()
    assert (package / "old.py").exists()
    assert (wheel / "tvm" / "libtvm.so").exists(), "the wheel's own environment is left as it was"


def test_sources_that_cannot_be_imported(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_toolchain, "smoke_test", smoke.smoke_test)  # it cannot begin
    head = commit(checkout, {"python/tvm/__init__.py": "raise ValueError('no such native object')\n"})
    with pytest.raises(BrokenSourcesError, match="no such native object") as caught:
        make(LocalRepository(checkout, tmp_path / "objects"), head, tmp_path / "data", whole=True)
    (kept,) = (tmp_path / "data" / "toolchains").glob("*/assay-toolchain.json")
    record = json.loads(kept.read_text())
    assert (record["commit"], record["requirements"][0]) == (head, "apache-tvm==0.26.0")
    assert not (kept.parent / "bin").exists()
    assert re.findall(r'File "(.*?)"', str(caught.value)) == ["tvm/__init__.py"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "cannot import tvm"),
        ("import time\ntime.sleep(60)\n", "did not end within 1 s"),
    ],
)
def test_an_import_that_does_not_end_is_tried_again_later(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    """The machine may be short of memory, or busy."""

    def smoke_test(*_: object) -> str:
        raise RunnerError("it does not start")

    monkeypatch.setattr(commit_toolchain, "smoke_test", smoke_test)
    monkeypatch.setattr(probe, "PROBE_TIMEOUT_S", 1.0)
    head = commit(checkout, {"python/tvm/__init__.py": source})
    for _attempt in range(2):
        with pytest.raises(CheckUnfinishedError, match=message) as caught:
            make(LocalRepository(checkout, tmp_path / "objects"), head, tmp_path / "data", whole=True)
        assert caught.value.transient
        assert not list((tmp_path / "data" / "toolchains").glob("*/assay-*"))


def test_a_kill_leaves_nothing_half_made(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    head = commit(checkout, {MARKER: "NAME = 'head'\n", "python/tvm/old.py": None})
    repository = LocalRepository(checkout, tmp_path / "objects")
    total = kills.count_steps(lambda: make(repository, head, tmp_path / "whole"))
    for step in kills.spread(total, 4):
        data = tmp_path / f"killed-{step}"
        kills.kill_at(step, partial(make, repository, head, data))
        ready, package = make(repository, head, data)
        assert (package / "relax/frontend/onnx/onnx_frontend.py").read_text() == "NAME = 'head'\n"
        assert (package / "libtvm.so").read_text() == "native"
        assert not (package / "old.py").exists()
        assert not list(data.glob("toolchains/*.partial-*"))
        assert make(repository, head, data)[0] == ready


def test_a_failure_is_found_again(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = commit(checkout, {"python/tvm/__init__.py": "raise ValueError('once')\n"})
    repository = LocalRepository(checkout, tmp_path / "objects")
    with pytest.raises(BrokenSourcesError, match="once") as first:
        make(repository, head, tmp_path / "data", whole=True)
    monkeypatch.setattr(commit_toolchain, "probe", lambda *_: pytest.fail("it is known to fail"))
    with pytest.raises(BrokenSourcesError) as second:
        make(repository, head, tmp_path / "data", whole=True)
    assert str(second.value) == str(first.value)
    assert "Traceback" in str(first.value)


def test_a_failed_smoke_test_is_no_toolchain(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "the compiler fails on relu")
    with pytest.raises(BrokenSourcesError, match="fails on relu"):
        make(
            LocalRepository(checkout, tmp_path / "objects"),
            git(checkout, "rev-parse", "HEAD"),
            tmp_path / "d",
        )


def test_a_smoke_test_that_does_not_end_leaves_nothing(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(*_: object) -> str:
        raise CheckUnfinishedError("whether the compiler works is not known")

    repository, head = LocalRepository(checkout, tmp_path / "objects"), git(checkout, "rev-parse", "HEAD")
    with monkeypatch.context() as patched:
        patched.setattr(commit_toolchain, "smoke_test", hang)
        with pytest.raises(CheckUnfinishedError):
            make(repository, head, tmp_path / "data")
    assert not list((tmp_path / "data" / "toolchains").glob("*/assay-*"))
    assert make(repository, head, tmp_path / "data")[1].is_dir(), "it works once the machine does"


def test_what_works_in_place_of_the_whole_package(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    """The frontends alone, where the package does not work over the wheel; and why is said."""
    base = commit(checkout, {"python/tvm/__init__.py": "raise ValueError('native')\n", MARKER: "NAME = 1\n"})
    head = commit(checkout, {MARKER: "NAME = 2\n", "python/tvm/__init__.py": ""})
    repository = LocalRepository(checkout, tmp_path / "objects")
    ready, package = make(repository, base, tmp_path / "data")
    assert (package / "__init__.py").read_text() == "", "that of the wheel"
    assert (package / "relax/frontend/onnx/onnx_frontend.py").read_text() == "NAME = 1\n"
    assert "native" in ready.passed_over[0]
    spec = toolchains.resolve(config(), CommitFiles(repository, TARGET, head), tmp_path / "data")
    assert [one.path for one in spec.overlay] == ["python/tvm"]
    assert [one.path for one in spec.like(ready.spec).overlay] == ["python/tvm/relax/frontend"]
    assert spec.like(ready.spec).is_out_of_reach("python/tvm/__init__.py")
    assert not spec.is_out_of_reach("python/tvm/__init__.py")


def test_all_of_the_nearest_wheel_is_tried_before_another_one(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay.OverlayProvisioner, "_nearest", lambda *_: ("0.26.0", "0.25.0"))
    read = CommitFiles(LocalRepository(checkout, tmp_path / "o"), TARGET, git(checkout, "rev-parse", "HEAD"))
    spec = toolchains.resolve(parse_config(CONFIG.replace(b", wheel: 0.26.0", b"")), read, tmp_path / "data")
    tried = [(one.requirements[0], one.overlay[0].path) for one in spec.candidates()]
    assert tried == [
        ("apache-tvm==0.26.0", "python/tvm"),
        ("apache-tvm==0.26.0", "python/tvm/relax/frontend"),
        ("apache-tvm==0.25.0", "python/tvm"),
        ("apache-tvm==0.25.0", "python/tvm/relax/frontend"),
    ]


def test_sources_come_through_a_mirror(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    git(checkout, "config", "uploadpack.allowFilter", "true")
    git(checkout, "config", "uploadpack.allowAnySHA1InWant", "true")
    (tmp_path / "octo").mkdir()
    (tmp_path / "octo" / "tvm.git").symlink_to(checkout / ".git")
    head = commit(checkout, {MARKER: "NAME = 'head'\n", "python/tvm/old.py": None})
    mirrors = Repositories(tmp_path.as_uri(), tmp_path / "mirrors")
    ready, package = make(mirrors, head, tmp_path / "data")
    assert (package / "relax/frontend/onnx/onnx_frontend.py").read_text() == "NAME = 'head'\n"
    assert not (package / "old.py").exists(), "the tag of the release tells that it was deleted"
    assert ready.digest == make(LocalRepository(checkout, tmp_path / "o"), head, tmp_path / "data")[0].digest
    assert mirrors.tags(TARGET, head, "v") == ("v0.26.0",)
    assert mirrors.tag(TARGET, head, "v9") == ""
    assert release_series(CommitFiles(mirrors, TARGET, head), layouts_of("tvm")) == (0, 26)


def layouts_of(backend: str) -> Any:
    return next(one for one in layouts() if one.backend == backend)


def test_provisioners_are_tried_in_order(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    both = parse_config(b"version: 1\nbackend: tvm\ntoolchain: {provisioner: [overlay, release]}\n")
    other = commit(checkout, {MARKER: None, "requirements.txt": "apache-tvm==0.26.0\nonnx==1.17.0\n"})
    repository = LocalRepository(checkout, tmp_path / "objects")
    spec = toolchains.resolve(both, CommitFiles(repository, TARGET, other), tmp_path / "data")
    assert spec.provisioner == "release"
    assert "overlay cannot make it" in spec.passed_over[0]
    nothing = commit(checkout, {"requirements.txt": None})
    with pytest.raises(ConfigError, match=r"(?s)no provisioner can make this commit.*overlay.*release"):
        toolchains.resolve(both, CommitFiles(repository, TARGET, nothing), tmp_path / "data")


def test_a_wheel_without_the_folder(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    (wheel / "tvm").rename(wheel / "other")
    with pytest.raises(BrokenSourcesError, match="has no folder tvm"):
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
    assert set(repository.changed_files("", repository.parent(sha), sha)) == {
        MARKER,
        "python/tvm/untracked.py",
    }
    assert git(checkout, "status", "--porcelain") == status, "the repository is left as it was"


def test_what_a_repository_is_asked_for(checkout: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    head = repository.resolve("HEAD")
    files = list(repository.files("", head, "python/tvm"))
    contents = dict(
        zip((one.path for one in files), repository.blobs("", head, [one.blob for one in files]), strict=True)
    )
    assert contents["python/tvm/old.py"] == b"1\n"
    assert repository.tree("", head, "python/tvm") != repository.tree("", head, "python") != ""
    assert repository.tree("", head, "nothing") == ""
    assert repository.tag("", head, "v0.26.0") == head
    assert repository.tag("", head, "v9") == ""
    assert repository.tags("", head, "v") == ("v0.26.0",)
    with pytest.raises(UsageError, match="has no commit 'nothing'"):
        repository.resolve("nothing")
    with pytest.raises(UsageError, match="not a git repository"):
        LocalRepository(tmp_path, tmp_path / "objects")


def test_the_series_of_a_commit(checkout: Path, tmp_path: Path) -> None:
    repository = LocalRepository(checkout, tmp_path / "objects")
    source = CommitFiles(repository, "", git(checkout, "rev-parse", "HEAD"))
    assert release_series(source, find_layout(source)) == (0, 26)
    torch = next(one for one in layouts() if one.package == "torch")
    assert torch.series_of("2.14.0a0\n", of_tag=False) == (2, 14)
    assert torch.series_of("none", of_tag=False) is None
    commit(checkout, {"a": "1\n"})
    git(checkout, "tag", "v0.27.dev0")
    release = replace(source, sha=commit(checkout, {"b": "1\n"}))
    assert release_series(release, find_layout(source)) == (0, 27), "a commit of the line of development"
    git(checkout, "tag", "v0.26.1.rc0")
    assert release_series(release, find_layout(source)) == (0, 27)
    git(checkout, "tag", "v0.26.1")
    assert release_series(release, find_layout(source)) == (0, 26), "and the release cut from it"
    # tinygrad's setup.py named the version until November 2025: its older commits are known by their tags.
    assert layouts_of("tinygrad").series_of("v0.11.0", of_tag=True) == (0, 11)


def test_no_known_compiler(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    git(folder, "init", "--quiet")
    sha = commit(folder, {"README.md": "words\n"})
    with pytest.raises(ConfigError, match="no commit of a known compiler's repository"):
        find_layout(CommitFiles(LocalRepository(folder, tmp_path / "objects"), "", sha))
