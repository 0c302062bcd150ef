"""`assay bisect --repo`: a history made here, its commits really laid over a wheel, the case really run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.bisection.search import max_probed
from bot.cli import main
from bot.cli.cases import bisect
from bot.cli.common.commit_toolchains import read_toolchain
from bot.cli.common.options import validate_configuration
from bot.config import RepositoryConfig
from bot.config import layouts as known_layouts
from bot.config.layouts import SourceLayout
from bot.errors import UsageError
from bot.github.local_repository import LocalRepository
from bot.toolchains import commit_toolchain
from fuzzing import backends
from fuzzing.cases import Corpus
from tests.bot.bisection.commit_world import PACK
from tests.bot.bisection.tiny_index import BACKEND, GOOD, NO_IMPORT, WRONG, make_index
from tests.bot.cli.command_helpers import GOOD as CASE
from tests.bot.toolchains.test_overlay import commit, git
from tests.support.smoke import import_alone
from tests.support.wheels import make_wheel

CODE = "tinyc/__init__.py"
NOTES = "tinyc/notes.py"
LAYOUT = SourceLayout(
    backend=BACKEND,
    package="tinyc",
    marker=CODE,
    paths={"tinyc": "tinyc"},
    native=("src/",),
    tag=r"v(\d+\.\d+)\.",
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the release 1.0, the index that has its wheel, and a corpus with the case."""
    for name, value in make_index(tmp_path, {}).items():
        monkeypatch.setenv(name, value)
    make_wheel(tmp_path / "index", "tinyc", "1.0.0", extra_files={CODE: GOOD.encode()})
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "data"))
    Corpus(tmp_path / "data" / "corpus").add(CASE)
    monkeypatch.setattr(known_layouts, "layouts", lambda: (LAYOUT,))
    # The smoke test has other models than x + y.
    monkeypatch.setattr(commit_toolchain, "smoke_test", import_alone)

    def configuration(_given: Any) -> RepositoryConfig:
        return validate_configuration({"backend": "onnxruntime"}).model_copy(update={"backend": BACKEND})

    monkeypatch.setattr(bisect, "validate_configuration", configuration)
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, {CODE: GOOD})
    git(folder, "tag", "v1.0.0")
    return folder


def run(capsys: pytest.CaptureFixture[str], folder: Path, commits: str, *options: str) -> dict[str, Any]:
    """The answer for a range; exit code 1, as the change was found."""
    arguments = (
        "--repo",
        str(folder),
        "--commits",
        commits,
        "--backend",
        BACKEND,
        "--repeats",
        "2",
        "--json",
    )
    with pytest.raises(SystemExit) as left:
        main(["bisect", CASE.id[:12], *arguments, *options])
    written = capsys.readouterr()
    assert left.value.code == 1, written.err
    answer: dict[str, Any] = json.loads(written.out)
    return answer


@pytest.mark.slow
def test_the_commit_is_named_with_author_and_pull_request(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in range(3):
        commit(repository, {NOTES: f"NOTE = {place}\n"})
        commit(repository, {"README.md": f"{place}\n"})
    before = commit(repository, {NOTES: "NOTE = 3\n"})
    culprit = commit(repository, {CODE: WRONG}, "Rework add (#12)")
    for place in range(4, 7):
        commit(repository, {NOTES: f"NOTE = {place}\n"})
    answer = run(capsys, repository, "v1.0.0..main")
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", culprit, before)
    named = {"sha": culprit, "author": "a", "subject": "Rework add (#12)", "pull_request": 12}
    assert answer["commits"]["release"] == named
    assert answer["releases"] == 9, "commits that change no source of the compiler are left out"
    assert len({row["toolchain"] for row in answer["probed"]}) <= max_probed(9)
    assert answer["confidence"] > 0.9
    again = run(capsys, repository, "v1.0.0..main")
    assert (again["release"], again["cost"]["installs"], again["cost"]["runs"]) == (culprit, 0, 0)


@pytest.mark.slow
def test_a_fix_that_reverts_beside_a_commit_that_cannot_be_imported(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = commit(repository, {CODE: WRONG}, "Rework add (#12)")
    commit(repository, {CODE: NO_IMPORT})
    last = commit(repository, {CODE: WRONG, NOTES: "NOTE = 1\n"})
    git(repository, "rm", "--quiet", NOTES)
    fix = commit(repository, {CODE: GOOD}, 'Revert "Rework add (#12)" (#13)')
    answer = run(capsys, repository, f"{broken}..main", "--fixed-by")
    assert (answer["release"], answer["before"]) == (fix, last)
    assert answer["commits"]["release"]["pull_request"] == 13


def test_the_search_begins_at_the_first_commit_that_works(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = commit(repository, {CODE: NO_IMPORT})
    for place in range(5):
        commit(repository, {NOTES: f"NOTE = {place}\n"})
    before = commit(repository, {CODE: GOOD})
    culprit = commit(repository, {CODE: WRONG})
    answer = run(capsys, repository, f"{begin}..main")
    assert (answer["release"], answer["before"], answer["releases"]) == (culprit, before, 2)


def test_all_commits_are_laid_over_the_wheel_of_the_bad_end(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wheel in (tmp_path / "index").rglob("tinyc-1.0.0*"):
        wheel.unlink()
    make_wheel(tmp_path / "index", "tinyc", "3.0.0", extra_files={CODE: GOOD.encode()})
    culprit = commit(repository, {CODE: WRONG})
    git(repository, "tag", "v3.0.0")
    answer = run(capsys, repository, "v1.0.0..v3.0.0")
    assert (answer["release"], answer["over"]) == (culprit, "tinyc 3.0.0 with tinyc of the commit")


@pytest.mark.slow
def test_of_a_merge_the_commit_that_it_brought(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(repository, "checkout", "--quiet", "-b", "topic")
    commit(repository, {NOTES: "NOTE = 1\n"})
    culprit = commit(repository, {CODE: WRONG}, "Rework add")
    commit(repository, {NOTES: "NOTE = 2\n"})
    git(repository, "checkout", "--quiet", "main")
    commit(repository, {"tinyc/other.py": "OTHER = 1\n"})
    git(repository, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #7 from octo/topic", "topic")
    merge = git(repository, "rev-parse", "HEAD")
    answer = run(capsys, repository, "v1.0.0..main")
    assert answer["commits"]["release"] | {"merge": merge} == answer["commits"]["release"]
    assert answer["release"] == culprit


CONFIG = """\
version: 1
backend: onnxruntime
toolchain:
  provisioner: [source]
  build: {commands: [python pack.py], sources: [tinyc]}
"""


def test_commits_are_built_as_the_repository_says(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "compilers", lambda: (BACKEND, "onnxruntime"))
    before = commit(repository, {"pack.py": PACK, NOTES: "NOTE = 1\n"})
    culprit = commit(repository, {CODE: WRONG})
    # What was written later tells how earlier commits are built.
    commit(repository, {".github/assay.yml": CONFIG.replace("onnxruntime", BACKEND)})
    answer = run(capsys, repository, f"{before}..{culprit}")
    assert (answer["release"], answer["before"]) == (culprit, before)
    assert {row["provisioner"] for row in answer["probed"]} == {"source"}


def test_a_configuration_in_a_file(repository: Path, tmp_path: Path) -> None:
    found = LocalRepository(repository, tmp_path / "objects")
    sha = found.resolve("main")
    assert read_toolchain(found, sha, None, ())[1].provisioner == ["overlay"]
    file = tmp_path / "assay.yml"
    file.write_text(CONFIG)
    backend, toolchain = read_toolchain(found, sha, file, ())
    assert (backend, toolchain.provisioner) == ("onnxruntime", ["source"])
    named = read_toolchain(found, sha, file, ("artifact", "source"))[1]
    assert (named.provisioner, named.build) == (["artifact", "source"], toolchain.build)
    commit(repository, {CODE: None, "README": "1\n"})
    with pytest.raises(UsageError, match="no commit of a known compiler's repository, and it pins none"):
        read_toolchain(found, found.resolve("main"), None, ())


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--commits", "v1.0.0..main"), "--commits needs --repo"),
        ((), "name what to search"),
        (("--repo", "{}", "--commits", "main"), "write GOOD..BAD"),
        (("--repo", "{}", "--commits", "main..v1.0.0"), "is the order reversed"),
        (("--repo", "{}", "--commits", "v1.0.0..gone"), "has no commit 'gone'"),
        (("--releases", "tinyc:1..2", "--provisioner", "source"), "--provisioner needs --repo"),
        (("--releases", "tinyc:1..2", "--config", "{}/tinyc/notes.py"), "--config needs --repo"),
        (("--repo", "{}", "--commits", "v1.0.0..main", "--provisioner", "sorcery"), "source"),
        (("--repo", "{}", "--commits", "v1.0.0..main", "--provisioner", "source"), "no commands build"),
    ],
)
def test_mistakes(
    repository: Path, arguments: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repository, {NOTES: "NOTE = 1\n"})
    with pytest.raises(SystemExit) as left:
        main(["bisect", CASE.id[:12], "--backend", BACKEND, *(one.format(repository) for one in arguments)])
    assert left.value.code == 2
    assert what in capsys.readouterr().err
