"""What the sources out of an overlay's reach name, on a repository made here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot import toolchains
from bot.commit_files import CommitFiles
from bot.github.local_repository import LocalRepository
from bot.toolchains import ToolchainSpec, unreachable_sources
from bot.toolchains.unreachable_sources import needed_names, read_unreachable_sources
from tests.bot.toolchains.test_overlay import MARKER, TARGET, checkout, commit, config, git

__all__ = ["checkout"]

OPERATORS, LATER, NEW = "src/relax/op.cc", "src/relax/later.cc", "python/tvm/relax/new.py"


def def_function(*names: str) -> str:
    return "#define ADD(name)\n" + "".join(f'.def("relax.op.{name}", {name})\n' for name in names)


@pytest.fixture
def commits(checkout: Path) -> tuple[Path, str, str]:
    """A repository whose release has `subtract`; base has `later`, too, and head `subtract2` in its place."""
    unreachable_sources._read.cache_clear()  # commits of one second have equal ids
    unreachable_sources._needed.cache_clear()
    commit(checkout, {OPERATORS: def_function("subtract", "kept")})
    git(checkout, "tag", "--force", "v0.26.0")
    base = commit(checkout, {LATER: def_function("later"), "docs/index.md": "unread\n"})
    head = commit(
        checkout,
        {
            OPERATORS: def_function("subtract2", "kept"),
            MARKER: "NAME = 'relax.op.subtract2'\n",
            NEW: "added = 1\n",
        },
    )
    return checkout, base, head


def specs(repository: Path, tmp_path: Path, sha: str) -> list[ToolchainSpec]:
    files = CommitFiles(LocalRepository(repository, tmp_path / "objects"), TARGET, sha)
    return list(toolchains.resolve(config(), files, tmp_path / "data").candidates())


def test_names_that_came_after_the_wheel_and_what_the_change_alters(
    commits: tuple[Path, str, str], tmp_path: Path
) -> None:
    repository, base, head = commits
    whole, frontend = specs(repository, tmp_path, head)
    found = read_unreachable_sources(whole, base)
    assert found.wheel == "apache-tvm 0.26.0"
    gained = {
        name: found.gained.get(name)
        for name in ("relax.op.subtract2", "subtract2", "later", "relax.op.later")
    }
    assert gained == {
        "relax.op.subtract2": OPERATORS,
        "subtract2": OPERATORS,
        "later": LATER,
        "relax.op.later": LATER,
    }
    assert not found.gained.keys() & {"subtract", "kept", "unread", "added", "NAME"}
    assert found.changed.keys() >= {"subtract", "subtract2", "relax.op.subtract"}
    assert not found.changed.keys() & {"kept", "later", "ADD"}
    assert found.touched.keys() >= {"kept", "ADD"}
    assert "later" not in found.touched
    assert read_unreachable_sources(frontend, base).gained["added"] == NEW, "it has the frontends alone"


def test_without_the_tag_of_the_release_the_change_alone_counts(
    commits: tuple[Path, str, str], tmp_path: Path
) -> None:
    repository, base, head = commits
    whole = specs(repository, tmp_path, head)[0]
    git(repository, "tag", "--delete", "v0.26.0")
    found = read_unreachable_sources(whole, base)
    assert found.gained["subtract2"] == OPERATORS
    assert "later" not in found.gained


def test_equal_toolchains_of_two_commits_are_told_apart(
    commits: tuple[Path, str, str], tmp_path: Path
) -> None:
    repository, base, head = commits
    native = commit(repository, {"src/relax/further.cc": def_function("further")})
    whole, further = specs(repository, tmp_path, head)[0], specs(repository, tmp_path, native)[0]
    assert whole == further
    assert "further" not in read_unreachable_sources(whole, base).gained
    assert "further" in read_unreachable_sources(further, base).gained


def test_a_toolchain_that_has_all_lacks_nothing(commits: tuple[Path, str, str], tmp_path: Path) -> None:
    repository, base, head = commits
    whole = specs(repository, tmp_path, head)[0]
    for spec in (replace(whole, overlay=()), replace(whole, unreachable=()), replace(whole, commit=None)):
        found = read_unreachable_sources(spec, base)
        assert (found.gained, found.changed, found.touched) == ({}, {}, {})


def test_the_missing_names_that_a_commit_needs(commits: tuple[Path, str, str], tmp_path: Path) -> None:
    repository, base, head = commits
    assert needed_names(specs(repository, tmp_path, base)[0]) == frozenset(), "its Python does not use them"
    assert needed_names(specs(repository, tmp_path, head)[0]) == {"subtract2", "relax.op.subtract2"}
    module = commit(repository, {NEW: "value = 1\n", MARKER: "import tvm.relax.new\n\nNAME = 'released'\n"})
    whole, frontend = specs(repository, tmp_path, module)
    assert needed_names(whole) == frozenset(), "it has the module"
    assert needed_names(frontend) == {"tvm.relax.new"}
    git(repository, "tag", "--delete", "v0.26.0")
    unreachable_sources._needed.cache_clear()
    assert needed_names(specs(repository, tmp_path, head)[0]) == frozenset(), "it is not known since when"
