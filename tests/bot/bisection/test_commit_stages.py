"""Commits as toolchains of `source`, `artifact`, `index` and chains of them, each really made."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.bisection.index_search import _starts
from bot.bisection.report import format_lines
from bot.config import layouts as known_layouts
from bot.config.layouts import SourceLayout
from bot.errors import ConfigError
from bot.github.local_repository import LocalRepository
from bot.github.mirrored_repository import MirroredRepository
from bot.toolchains import commit_toolchain
from fuzzing import backends
from tests.bot.bisection.commit_world import BUILD, CODE, PACK, Commits
from tests.bot.bisection.tiny_index import GOOD, WRONG
from tests.bot.toolchains.test_artifact import TARGET, WORKFLOW, Ci, ci, store
from tests.bot.toolchains.test_index import DAY, NIGHTLIES, SimpleIndex, index
from tests.bot.toolchains.test_overlay import commit, git
from tests.bot.toolchains.test_release_provision import Tiny, use_index
from tests.support.wheels import make_wheel

__all__ = ["ci", "index", "store"]  # fixtures

NO_BUILD = "def add(x, y:\n"
ARTIFACT = {"workflow": WORKFLOW}


def variant(code: str, number: int) -> str:
    """The same code as other sources."""
    return f"{code}NUMBER = {number}\n"


def made_by(answer: dict[str, Any]) -> dict[str, str]:
    """Commit → its provisioner, of those that were tried and made."""
    return {row["release"]: row["provisioner"] for row in answer["probed"] if row["provisioner"]}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose commits are built by one command, and an index without a wheel."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "index").mkdir()
    use_index(tmp_path / "index", tmp_path, monkeypatch)
    monkeypatch.setattr(backends, "get", lambda _: Tiny)
    monkeypatch.setattr(backends, "compilers", lambda: ("tiny",))
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, {CODE: GOOD, "pack.py": PACK})
    git(folder, "tag", "good")
    return folder


@pytest.fixture
def commits(checkout: Path, tmp_path: Path) -> Commits:
    return Commits(LocalRepository(checkout, tmp_path / "objects"), tmp_path / "data")


def test_built_commits(checkout: Path, commits: Commits) -> None:
    good = git(checkout, "rev-parse", "HEAD")
    commit(checkout, {CODE: variant(GOOD, 1)})
    before = commit(checkout, {CODE: variant(GOOD, 2)})
    commit(checkout, {"README": "no source of the build\n"})
    culprit = commit(checkout, {CODE: WRONG}, "Rework add (#12)")
    commit(checkout, {CODE: variant(WRONG, 3)})
    answer = commits.search("good..main", provisioner=["source"], build=BUILD)
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", culprit, before)
    assert answer["commits"]["release"]["pull_request"] == 12
    assert answer["releases"] == 5, "a commit that changes no source of the build is none"
    assert set(made_by(answer).values()) == {"source"}
    assert any(f"going on from {good[:12]}" in step for step in commits.steps), "builds go on from others"
    text = "\n".join(format_lines(answer))
    assert "each commit was built by the commands of the configuration" in text
    assert f"✗  fails  {culprit[:12]}  source  wrong_result ×2" in text
    commits.steps.clear()
    again = commits.search("good..main", provisioner=["source"], build=BUILD)
    assert (again["release"], again["cost"]["installs"], again["cost"]["runs"]) == (culprit, 0, 0)
    assert not any("building" in step for step in commits.steps)


def test_commits_that_cannot_be_built_are_skipped_and_a_revert_costs_nothing(
    checkout: Path, commits: Commits
) -> None:
    broken = commit(checkout, {CODE: NO_BUILD})
    culprit = commit(checkout, {CODE: WRONG})
    fix = commit(checkout, {CODE: GOOD}, "Revert")
    answer = commits.search("good~0..main~1", provisioner=["source"], build=BUILD)
    assert (answer["kind"], answer["release"], answer["between"]) == ("range", culprit, [broken])
    (row,) = [row for row in answer["probed"] if row["release"] == broken]
    assert (row["judgement"], row["provisioner"]) == ("skipped", "")
    assert row["trouble"] == (
        "SyntaxError: '(' was never closed; the build fails in: python pack.py (exit status 1)"
    )
    assert f"could not be judged: {broken[:12]}" in "\n".join(format_lines(answer))
    answer = commits.search(f"{culprit}..main", provisioner=["source"], build=BUILD, fixed_by=True)
    assert (answer["release"], answer["before"]) == (fix, culprit)
    assert answer["cost"]["installs"] == 0, "the revert has the sources of the first commit"


def test_of_a_merge_the_built_commit_that_it_brought(checkout: Path, commits: Commits) -> None:
    git(checkout, "checkout", "--quiet", "-b", "topic")
    culprit = commit(checkout, {CODE: WRONG})
    commit(checkout, {CODE: variant(WRONG, 1)})
    git(checkout, "checkout", "--quiet", "main")
    commit(checkout, {"tinyc/other.py": "1\n"})
    git(checkout, "merge", "--quiet", "--no-ff", "--message", "Merge", "topic")
    merge = git(checkout, "rev-parse", "HEAD")
    answer = commits.search("good..main", provisioner=["index", "source"], build=BUILD)
    assert (answer["release"], answer["commits"]["release"]["merge"]) == (culprit, merge)
    assert "  not by index: toolchain.index: no index is named" in format_lines(answer)


def test_a_configuration_that_makes_nothing_is_no_skipped_commit(checkout: Path, commits: Commits) -> None:
    commit(checkout, {CODE: WRONG})
    with pytest.raises(ConfigError, match="no commands build this repository"):
        commits.search("good..main", provisioner=["source"])


def test_a_commit_without_the_configured_sources_is_skipped(checkout: Path, commits: Commits) -> None:
    git(checkout, "rm", "--quiet", "-r", "tinyc")
    git(checkout, "commit", "--quiet", "--message", "Remove")
    removed = git(checkout, "rev-parse", "HEAD")
    culprit = commit(checkout, {CODE: WRONG})
    build = {"commands": ["python pack.py"], "sources": ["tinyc"]}
    answer = commits.search("good..main", provisioner=["source"], build=build)
    assert (answer["kind"], answer["release"], answer["between"]) == ("range", culprit, [removed])
    assert [row["trouble"] for row in answer["probed"] if row["release"] == removed] == [
        f"toolchain.build.sources: {removed[:12]} has none of tinyc"
    ]


def test_a_pinned_release(checkout: Path, commits: Commits, tmp_path: Path) -> None:
    for version, code in {"1.0": GOOD, "2.0": WRONG}.items():
        make_wheel(tmp_path / "index", "tinyc", version, code=code)
    for name in ("tinynum",):
        make_wheel(tmp_path / "index", name, "1.0")
    good = commit(checkout, {"requirements.txt": "tinyc==1.0\n"})
    commit(checkout, {"README": "1\n"})
    culprit = commit(checkout, {"requirements.txt": "tinyc==2.0\n"})
    commit(checkout, {"README": "2\n"})
    answer = commits.search(f"{good}..main", provisioner=["release"])
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", culprit, good)
    assert answer["releases"] == 2
    assert f"✗  fails  {culprit[:12]}  tinyc 2.0  wrong_result ×2" in "\n".join(format_lines(answer))


# -- wheels of CI ----------------------------------------------------------------------------------------


class CiCommits(Commits):
    """Commits of the double of GitHub, some with a wheel of its CI."""

    def __init__(self, ci: Ci) -> None:
        head = ci.repository.head()
        super().__init__(MirroredRepository(ci.source, TARGET, head), ci.folder / "data")
        self.ci, self.shas = ci, [ci.repository.commit({CODE: GOOD, "pack.py": PACK})]

    def add(self, code: str, *, wheel: bool = True) -> str:
        number = len(self.shas)
        sha = self.ci.repository.commit({CODE: variant(code, number)})
        self.shas.append(sha)
        if wheel:
            self.publish(sha, code)
        return sha

    def publish(self, sha: str, code: str) -> None:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as opened:
            made = make_wheel(self.ci.folder, "tinyc", "1.0", extra_files={CODE: code.encode()})
            opened.write(made, made.name)
        run = self.ci.repository.start_workflow(WORKFLOW, sha)
        self.ci.repository.end_workflow(run, {"linux-wheel": data.getvalue()}, "success")
        self.ci.store.files |= {f"/{number}.zip": file for (number, _), file in run.artifacts.items()}


@pytest.fixture
def ci_commits(ci: Ci) -> CiCommits:
    found = CiCommits(ci)
    found.publish(found.shas[0], GOOD)
    return found


def test_wheels_of_ci_and_commits_without_one(ci_commits: CiCommits) -> None:
    before = ci_commits.add(GOOD)
    missing = ci_commits.add(GOOD, wheel=False)
    running = ci_commits.add(WRONG, wheel=False)
    ci_commits.ci.repository.start_workflow(WORKFLOW, running)
    release = ci_commits.add(WRONG)
    answer = ci_commits.search(
        f"{ci_commits.shas[0]}..{release}", provisioner=["artifact"], artifact=ARTIFACT
    )
    assert (answer["kind"], answer["release"], answer["before"]) == ("range", release, before)
    assert answer["between"] == [missing, running]
    trouble = {row["release"]: row["trouble"] for row in answer["probed"] if row["judgement"] == "skipped"}
    assert trouble[missing] == f"wheels.yml has no run of {missing[:12]}"
    assert trouble[running].endswith("has not ended")
    assert not list(ci_commits.data.rglob("*.awaited")), "a campaign that waits later has all of its time"
    (made,) = [row["toolchain"] for row in answer["probed"] if row["release"] == release]
    assert made == ci_commits.ci.resolve().digest, "the campaign of a commit has made it already"
    assert "the wheel that the repository's CI built of each commit was installed" in "\n".join(
        format_lines(answer)
    )


def test_of_a_chain_the_first_that_can_make_a_commit(ci_commits: CiCommits) -> None:
    before = ci_commits.add(GOOD)
    culprit = ci_commits.add(WRONG, wheel=False)
    last = ci_commits.add(WRONG)
    commits = f"{ci_commits.shas[0]}..{last}"
    chain: dict[str, Any] = {"provisioner": ["artifact", "source"], "artifact": ARTIFACT, "build": BUILD}
    answer = ci_commits.search(commits, **chain)
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", culprit, before)
    by = [(row["release"], row["provisioner"]) for row in answer["probed"]]
    assert {(before, "artifact"), (culprit, "source"), (last, "artifact"), (before, "source")} <= set(by)
    (row,) = [row for row in answer["probed"] if row["release"] == culprit]
    assert row["passed_over"] == [f"wheels.yml has no run of {culprit[:12]}"]
    text = "\n".join(format_lines(answer))
    assert "they were made differently, and both by source with the same result" in text
    assert "the commits were made by artifact (3), source (2)" in text
    runs = ci_commits.adder.runs
    assert ci_commits.search(commits, **chain)["release"] == culprit
    assert ci_commits.adder.runs == runs, "runs are known by the toolchain that was made"


def test_why_no_provisioner_of_a_chain_can_make_a_commit(ci_commits: CiCommits) -> None:
    broken = ci_commits.add(NO_BUILD, wheel=False)
    last = ci_commits.add(WRONG)
    chain: dict[str, Any] = {"provisioner": ["artifact", "source"], "artifact": ARTIFACT, "build": BUILD}
    answer = ci_commits.search(f"{ci_commits.shas[0]}..{last}", **chain)
    assert (answer["release"], answer["between"]) == (last, [broken])
    assert [row["trouble"] for row in answer["probed"] if row["release"] == broken] == [
        f"wheels.yml has no run of {broken[:12]}; SyntaxError: '(' was never closed; "
        f"tinyc built from {broken[:12]}: the build fails in: python pack.py (exit status 1)"
    ]


def test_a_change_that_is_of_how_two_commits_were_made_is_doubtful(ci_commits: CiCommits) -> None:
    before = ci_commits.add(GOOD)
    release = ci_commits.add(GOOD, wheel=False)
    last = ci_commits.add(WRONG)
    ci_commits.data.mkdir(exist_ok=True)
    command = "python -c \"import pathlib; p = pathlib.Path('tinyc/__init__.py'); "
    command += "p.write_text(p.read_text().replace('x + y', 'x - y'))\""
    build = {**BUILD, "commands": [command, "python pack.py"]}
    chain: dict[str, Any] = {"provisioner": ["artifact", "source"], "artifact": ARTIFACT, "build": build}
    answer = ci_commits.search(f"{ci_commits.shas[0]}..{last}", **chain)
    assert (answer["release"], answer["before"], answer["across_provisioners"]) == (release, before, True)
    lines = format_lines(answer)
    assert lines[0].startswith("perhaps began to fail in commit")
    assert "  the two commits were made differently: the change may be of that" in lines


# -- nightly wheels --------------------------------------------------------------------------------------


@pytest.fixture
def dated(index: SimpleIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six commits of four days; the third but last brings a bug, which the wheel of that day has."""
    for version, code in zip(NIGHTLIES, (GOOD, GOOD, WRONG, WRONG), strict=True):
        make_wheel(index.folder, "tinyc", version, extra_files={CODE: code.encode()})
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    shas = []
    for number, hours in enumerate((-18, -12, 6, 12, 30, 54)):
        monkeypatch.setenv("GIT_COMMITTER_DATE", (DAY + timedelta(hours=hours)).isoformat())
        code = GOOD if number < 3 else WRONG
        shas.append(commit(folder, {CODE: variant(code, number)}, f"Change {number}"))
    return shas


def test_commits_between_two_nightly_wheels(index: SimpleIndex, dated: list[str], tmp_path: Path) -> None:
    commits = Commits(LocalRepository(tmp_path / "checkout", tmp_path / "objects"), tmp_path / "data")
    answer = commits.search(f"{dated[0]}..main", provisioner=["index"], index=index.url)
    assert answer["kind"] == "range"
    assert (answer["before"], answer["between"], answer["release"]) == (dated[0], dated[1:3], dated[3])
    assert answer["wheels"] == [f"tinyc {NIGHTLIES[1]}", f"tinyc {NIGHTLIES[2]}"]
    assert answer["releases"] == 4, "commits with one wheel are one toolchain"
    text = "\n".join(format_lines(answer))
    assert f"3 commits between the wheels tinyc {NIGHTLIES[1]} and tinyc {NIGHTLIES[2]}" in text
    assert f"tinyc {NIGHTLIES[2]}  wrong_result ×2" in text
    assert "the last nightly wheel from before each commit was installed" in text


def test_the_first_wheel_may_be_of_any_commit_before(
    index: SimpleIndex, dated: list[str], tmp_path: Path
) -> None:
    (index.folder / f"tinyc-{NIGHTLIES[0]}-py3-none-any.whl").unlink()
    commits = Commits(LocalRepository(tmp_path / "checkout", tmp_path / "objects"), tmp_path / "data")
    answer = commits.search(f"{dated[0]}..main", provisioner=["index"], index=index.url)
    assert (answer["kind"], answer["releases"]) == ("range", 3)
    assert (answer["before"], answer["release"]) == (dated[0], dated[3])


def test_what_is_between_two_wheels_is_searched_by_overlay(
    index: SimpleIndex, dated: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = SourceLayout("tiny", "tinyc", CODE, {"tinyc": "tinyc"}, ("src/",), tag=r"v(\d+\.\d+)\.")
    monkeypatch.setattr(known_layouts, "layouts", lambda: (layout,))
    commits = Commits(LocalRepository(tmp_path / "checkout", tmp_path / "objects"), tmp_path / "data")
    answer = commits.search(f"{dated[0]}..main", provisioner=["index"], index=index.url)
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", dated[3], dated[2])
    assert answer["range"] == f"{dated[0][:12]}..{dated[5][:12]}"
    assert set(made_by(answer).values()) == {"overlay"}
    (earlier,) = answer["earlier"]
    assert (earlier["stage"], earlier["kind"], earlier["release"]) == ("index", "range", dated[3])
    assert "before, by index: began to fail after commit" in "\n".join(format_lines(answer))


def test_wheels_that_name_their_commits(index: SimpleIndex, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for path in index.folder.iterdir():
        path.unlink()
    shas = [commit(folder, {CODE: variant(GOOD if number < 4 else WRONG, number)}) for number in range(6)]
    for number in (1, 3, 4):
        version = f"3.0.dev{number}+g{shas[number][:9]}"
        code = GOOD if number < 4 else WRONG
        make_wheel(index.folder, "tinyc", version, extra_files={CODE: code.encode()})
    commits = Commits(LocalRepository(folder, tmp_path / "objects"), tmp_path / "data")
    answer = commits.search(f"{shas[0]}..main", provisioner=["index"], index=index.url)
    assert (answer["kind"], answer["release"], answer["before"]) == ("found", shas[4], shas[3])
    assert any("1 commits" in step and "older than all wheels" in step for step in commits.steps)


def test_places_where_another_wheel_begins_are_found_by_few_questions() -> None:
    shas, asked = [str(number) for number in range(1000)], set()

    def wheel(sha: str) -> str:
        asked.add(sha)
        return str(int(sha) // 250)

    assert _starts(shas, wheel) == [0, 250, 500, 750]
    assert len(asked) < 40
