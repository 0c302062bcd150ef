"""The toolchains of `assay run --repo`: by the provisioners that the configuration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot import toolchains
from bot.cli.campaigns.commit_pair import CommitPair, Selection, read_commits, read_config
from bot.config import RepositoryConfig, parse_config
from bot.errors import ConfigError, ProvisionError, UsageError
from bot.github.local_repository import LocalRepository
from tests.bot.toolchains.test_overlay import CONFIG, MARKER, checkout, commit, git, wheel

__all__ = ["checkout", "wheel"]

OWN = ".github/assay.yml"


def written(provisioners: str, backend: str = "tvm") -> str:
    toolchain = f"toolchain: {{provisioner: [{provisioners}], wheel: 0.26.0}}"
    return f"version: 1\nbackend: {backend}\n{toolchain}\n"


def read(checkout: Path, head: str = "HEAD", release: str = "") -> CommitPair:
    config: RepositoryConfig = parse_config(CONFIG)
    data = checkout.parent / "data"
    repository = LocalRepository(checkout, data / "objects")
    own = read_config(repository, head)
    return read_commits(repository, head, "", release, config, own, data, lambda _note: None)


@pytest.mark.usefixtures("wheel")
def test_the_first_provisioner_that_can_makes_both_commits(checkout: Path) -> None:
    commit(checkout, {OWN: written("index, artifact, overlay, release")})
    commit(checkout, {MARKER: "NAME = 'head'\n"})
    found = read(checkout)
    assert found.to_json()["provisioners"] == ["overlay", "overlay"]
    assert [why.partition(":")[0] for why in found.passed_over] == [
        "index cannot make it",
        "artifact cannot make it",
    ]
    assert not found.same_compiler


def test_of_one_compiler_nothing_is_made(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def provision(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(toolchains, "provision", provision)
    commit(checkout, {MARKER: "# A comment.\nNAME  =  'released'\n", "src/relax.cc": "int x;\n"})
    found = read(checkout, release="0.26.0")
    assert found.same_compiler
    assert found.out_of_reach == ["src/relax.cc"]
    assert found.equality == "the compiler's Python code is the same"


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("native", [False, True])
def test_head_that_cannot_be_used_is_accused_unless_it_changes_native_code_too(
    checkout: Path, native: bool
) -> None:
    broken: dict[str, str | None] = {
        "python/tvm/new.py": "1\n",
        "python/tvm/__init__.py": "raise ValueError('no such type')\n",
    }
    if native:
        broken["src/relax.cc"] = "int x;\n"
    commit(checkout, broken)
    found = read(checkout)
    if native:
        with pytest.raises(ProvisionError, match="nothing was tested: head's sources do not work"):
            found.head_failure(checkout.parent / "data", lambda _note: None)
    else:
        assert "no such type" in found.head_failure(checkout.parent / "data", lambda _note: None)


@pytest.mark.usefixtures("wheel")
def test_a_release_on_the_command_line_is_the_wheel_of_an_overlay(checkout: Path) -> None:
    commit(checkout, {OWN: written("index"), "python/tvm/new.py": "1\n"})
    assert read(checkout, release="0.26.0").to_json()["provisioners"] == ["overlay", "overlay"]


def test_commits_that_no_provisioner_can_make_are_not_compared(checkout: Path) -> None:
    commit(checkout, {OWN: written("index, artifact")})
    with pytest.raises(ConfigError, match=r"(?s)no provisioner can make this commit.*index.*artifact"):
        read(checkout)


NOTHING = Selection(None, None, (), None, {})


def test_what_is_not_named_is_as_the_repository_configures_it() -> None:
    own = parse_config(
        b"version: 1\nbackend: openvino\nfrontend: onnx\nsources: [onnx-simple-tests]\n"
        b"options: {precision: f16, shapes: static}\n"
    )
    assert NOTHING.completed_from(own, other_cases=False) == Selection(
        "openvino", "onnx", ("onnx-simple-tests",), "CPU", {"precision": "f16", "shapes": "static"}
    )
    named = Selection("openvino", None, ("torch-opinfo",), "GPU", {"precision": "f32"})
    assert named.completed_from(own, other_cases=False) == Selection(
        "openvino", None, ("torch-opinfo",), "GPU", {"precision": "f32", "shapes": "static"}
    )
    with_cases = NOTHING.completed_from(own, other_cases=True)
    assert (with_cases.frontend, with_cases.sources) == (None, ())
    with pytest.raises(UsageError, match="use --backend openvino"):
        Selection("tvm", None, (), None, {}).completed_from(own, other_cases=False)


def test_a_repository_of_no_compiler_is_a_mistake(checkout: Path) -> None:
    git(checkout, "rm", "--quiet", "-r", ".")
    commit(checkout, {"README.md": "words\n"})
    with pytest.raises(UsageError, match="no known compiler's repository"):
        read(checkout)


def test_a_known_compiler_s_repository_needs_no_configuration(checkout: Path) -> None:
    own = read_config(LocalRepository(checkout, checkout.parent / "objects"), "")
    assert (own.backend, own.toolchain.provisioner) == ("tvm", ["overlay"])


@pytest.mark.usefixtures("wheel")
def test_a_pull_request_is_compared_with_where_it_began(checkout: Path) -> None:
    begin = commit(checkout, {OWN: written("overlay"), "python/tvm/new.py": "1\n"})
    git(checkout, "branch", "trunk")
    git(checkout, "checkout", "--quiet", "-b", "topic")
    first = commit(checkout, {MARKER: "NAME = 'one'\n"})
    second = commit(checkout, {MARKER: "NAME = 'two'\n"})
    git(checkout, "update-ref", "refs/pull/7/head", "HEAD")
    git(checkout, "checkout", "--quiet", "trunk")
    commit(checkout, {MARKER: "NAME = 'others'\n"})
    found = read(checkout, "refs/pull/7/head")
    assert (found.head, found.base) == (second, begin)
    assert read(checkout, second).base == first
