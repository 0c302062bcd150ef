"""The source provisioner on a small real project: a Python extension in C, built by make and gcc."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest

from bot import toolchains
from bot.commit_files import CommitFiles
from bot.config import RepositoryConfig, ToolchainConfig
from bot.config.sections import BuildConfig
from bot.errors import BrokenSourcesError, BuildFailedError, ConfigError, ProvisionError
from bot.github.local_repository import LocalRepository
from bot.toolchains import commit_toolchain, wheel_files
from bot.toolchains.wheel_files import check_wheel
from fuzzing import backends
from tests.bot.toolchains.test_overlay import commit, git
from tests.bot.toolchains.test_release_provision import Tiny, use_index
from tests.support import kills
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("make"), reason="needs gcc, make")

MODULE = """\
#include <Python.h>
int answer(void);
static PyObject *get(PyObject *self, PyObject *args) { return PyLong_FromLong(answer()); }
static PyMethodDef methods[] = {{"answer", get, METH_NOARGS, ""}, {0}};
static struct PyModuleDef tinyc = {PyModuleDef_HEAD_INIT, "tinyc", 0, -1, methods};
PyMODINIT_FUNC PyInit_tinyc(void) { return PyModule_Create(&tinyc); }
"""
ANSWER = "int answer(void) { return %d; }\n"
MAKEFILE = """\
FLAGS = -fPIC -I$(shell python -c "import sysconfig; print(sysconfig.get_paths()['include'])")
wheel: tinyc.so
\tpython pack.py
tinyc.so: module.o answer.o
\tgcc -shared -o $@ $^
%.o: %.c
\tgcc $(FLAGS) -c $< -o $@
\techo $< >> compiled.txt
"""
# What a build backend does, without one to install.
PACK = """\
import pathlib, shutil, zipfile
info = "tinyc-1.0.dist-info"
shutil.rmtree("dist", ignore_errors=True)
pathlib.Path("dist").mkdir()
with zipfile.ZipFile("dist/tinyc-1.0-py3-none-any.whl", "w") as wheel:
    wheel.write("tinyc.so")
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tinyc\\nVersion: 1.0\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/RECORD", "")
"""
PROJECT: dict[str, str | None] = {
    "module.c": MODULE,
    "answer.c": ANSWER % 1,
    "Makefile": MAKEFILE,
    "pack.py": PACK,
    "README": "words\n",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, index = tmp_path / "checkout", tmp_path / "index"
    folder.mkdir()
    index.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, PROJECT)
    use_index(index, tmp_path, monkeypatch)
    monkeypatch.setattr(backends, "get", lambda _: Tiny)
    monkeypatch.setattr(backends, "compilers", lambda: ("tiny",))
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "")
    return folder


def resolve(
    checkout: Path, sha: str = "", *, commands: tuple[str, ...] = ("make",), **fields: object
) -> toolchains.ToolchainSpec:
    build = BuildConfig.model_validate({"commands": list(commands), **fields})
    wanted = ToolchainConfig(provisioner=["source"], build=build)
    config = RepositoryConfig(version=1, backend="tiny", toolchain=wanted)
    repository = LocalRepository(checkout, checkout.parent / "objects")
    files = CommitFiles(repository, "", sha or git(checkout, "rev-parse", "HEAD"))
    return toolchains.resolve(config, files, checkout.parent / "data")


def make(checkout: Path, spec: toolchains.ToolchainSpec, steps: list[str] | None = None) -> int:
    """Makes a toolchain; what its compiler answers."""
    notes = steps if steps is not None else []
    ready = toolchains.provision(spec, checkout.parent / "data", notes.append)
    command = [ready.python, "-c", "import tinyc; print(tinyc.answer())"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def built(checkout: Path, sha: str) -> list[str]:
    """What was compiled for a commit and for those before it."""
    (tree,) = checkout.parent.glob(f"data/toolchains/builds/*/{sha}")
    return (tree / "files" / "compiled.txt").read_text().split()


def test_neighbors_are_built_incrementally(checkout: Path) -> None:
    base = git(checkout, "rev-parse", "HEAD")
    assert make(checkout, resolve(checkout)) == 1
    assert sorted(built(checkout, base)) == ["answer.c", "module.c"]
    head = commit(checkout, {"answer.c": ANSWER % 2})
    steps: list[str] = []
    assert make(checkout, resolve(checkout), steps) == 2
    assert f"tinyc built from {head[:12]}: building, going on from {base[:12]}" in steps
    assert sorted(built(checkout, head)) == ["answer.c", "answer.c", "module.c"], "only what changed"
    assert make(checkout, resolve(checkout, base)) == 1


def test_a_tree_that_builds_go_on_from_is_kept(checkout: Path) -> None:
    base = git(checkout, "rev-parse", "HEAD")
    make(checkout, resolve(checkout))
    for number in range(2, 7):  # as a bisection builds: each one after the same commit
        git(checkout, "checkout", "--quiet", base)
        commit(checkout, {"answer.c": ANSWER % number})
        steps: list[str] = []
        assert make(checkout, resolve(checkout), steps) == number
        assert any(f"going on from {base[:12]}" in step for step in steps), number


def test_what_another_branch_left_is_not_gone_on_from(checkout: Path) -> None:
    base = git(checkout, "rev-parse", "HEAD")
    commit(checkout, {"answer.c": ANSWER % 3, "left.h": "of the pull request\n"})
    make(checkout, resolve(checkout))
    git(checkout, "checkout", "--quiet", base)
    other = commit(checkout, {"answer.c": ANSWER % 4})
    steps: list[str] = []
    assert make(checkout, resolve(checkout), steps) == 4
    assert f"tinyc built from {other[:12]}: building" in steps
    (tree,) = checkout.parent.glob(f"data/toolchains/builds/*/{other}")
    assert not (tree / "files" / "left.h").exists()


def test_commits_with_the_same_sources_are_one_toolchain(checkout: Path) -> None:
    first = resolve(checkout, sources=["module.c", "answer.c"])
    commit(checkout, {"README": "other words\n"})
    second = resolve(checkout, sources=["module.c", "answer.c"])
    assert first.digest == second.digest
    assert first.digest != resolve(checkout).digest
    assert make(checkout, first) == 1
    steps: list[str] = []
    make(checkout, second, steps)
    assert steps == [f"{second.label}: made before"]


def test_a_failed_build_shows_its_last_lines_and_is_not_repeated(checkout: Path) -> None:
    commit(checkout, {"answer.c": "int answer(void) { return nothing; }\n"})
    spec = resolve(checkout, commands=("seq 60", "make"))
    with pytest.raises(BuildFailedError, match=r"(?s)fails in: make.*nothing.*undeclared") as caught:
        make(checkout, spec)
    assert len(str(caught.value).splitlines()) <= 51
    assert not isinstance(caught.value, BrokenSourcesError)
    steps: list[str] = []
    with pytest.raises(BuildFailedError) as again:
        make(checkout, spec, steps)
    assert str(again.value) == str(caught.value)
    assert not any("building" in step for step in steps)


@pytest.mark.parametrize(
    "said",
    [
        "c++: fatal error: Killed signal terminated program cc1plus",
        "/tmp/ccXyZ.s: fatal error: error writing to /tmp/ccXyZ.s: No space left on device",
    ],
)
def test_a_build_for_which_the_machine_is_too_small_is_tried_again(checkout: Path, said: str) -> None:
    spec = resolve(checkout, commands=(f"echo '{said}' >&2; exit 1",))
    for _attempt in range(2):
        with pytest.raises(ProvisionError, match=re.escape(said)) as caught:
            make(checkout, spec)
        assert not isinstance(caught.value, BuildFailedError)


def test_a_kill_leaves_nothing_half_built(checkout: Path) -> None:
    base, data = git(checkout, "rev-parse", "HEAD"), checkout.parent / "data"
    make(checkout, resolve(checkout))
    for number in range(4):
        head = commit(checkout, {"answer.c": ANSWER % (10 + number)})
        spec = resolve(checkout)
        if number == 0:
            total = kills.count_steps(partial(make, checkout, spec))
            continue
        kills.kill_at(total * number // 4, partial(make, checkout, spec))
        assert make(checkout, spec) == 10 + number
        steps: list[str] = []
        assert make(checkout, spec, steps) == 10 + number
        assert steps == [f"{spec.label}: made before"]
        assert not list(data.rglob("*.partial-*"))
        assert built(checkout, head).count("answer.c") == 2 + number, "each commit was built once"
    assert base


KILLED_ONCE = """\
cache="$HOME/ccache"; echo before >> order.txt; ls "$cache" >> order.txt 2>&1
mkdir -p "$cache"; test -e "$cache/objects" && make || { touch "$cache/objects"; kill -9 $$; }"""


def test_a_killed_build_goes_on_from_its_own_compiler_cache_alone(checkout: Path) -> None:
    spec = resolve(checkout, commands=(KILLED_ONCE,))
    with pytest.raises(ProvisionError, match="ended by signal 9"):
        make(checkout, spec)
    head = commit(checkout, {"answer.c": ANSWER % 2})
    with pytest.raises(ProvisionError, match="ended by signal 9"):  # another's cache was not found
        make(checkout, resolve(checkout, commands=(KILLED_ONCE,)))
    assert make(checkout, resolve(checkout, commands=(KILLED_ONCE,))) == 2
    (tree,) = checkout.parent.glob(f"data/toolchains/builds/*/{head}")
    assert (tree / "files" / "order.txt").read_text().split() == ["before", "objects"], (
        "no other file is kept"
    )
    assert (tree / "home" / "ccache" / "objects").exists()


def test_a_link_in_place_of_a_killed_builds_cache_is_not_followed(checkout: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "ccache").mkdir(parents=True)
    trap = f'rm -rf "$HOME"; ln -s {outside} "$HOME"; kill -9 $$'
    for _ in range(2):
        with pytest.raises(ProvisionError, match="ended by signal 9"):
            make(checkout, resolve(checkout, commands=(trap,)))
    assert (outside / "ccache").is_dir()


def test_a_build_has_limits_and_no_network(checkout: Path) -> None:
    with pytest.raises(BuildFailedError, match="takes longer than 1 s, in: sleep 60"):
        make(checkout, resolve(checkout, commands=("sleep 60",), time=1.0))
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        with pytest.raises(BuildFailedError, match="Error"):
            make(checkout, resolve(checkout, commands=(f'python -c "{code}"',)))
    big = "python -c \"x = bytearray(200 << 20); print('had it')\""
    with pytest.raises(BuildFailedError, match="MemoryError"):
        make(checkout, resolve(checkout, commands=(big,), memory=100 << 20))
    with pytest.raises(BuildFailedError, match="must make one wheel of tinyc; it made no wheel"):
        make(checkout, resolve(checkout, commands=("true",)))
    with pytest.raises(ConfigError, match="no commands build this repository"):
        resolve(checkout, commands=())


def test_a_compiler_that_cannot_be_imported_is_no_failed_build(checkout: Path) -> None:
    commit(checkout, {"answer.c": "int other(void) { return 1; }\n"})  # links, and does not load
    with pytest.raises(BrokenSourcesError, match="undefined symbol: answer"):
        make(checkout, resolve(checkout))


def test_links_of_an_earlier_build_are_not_written_through(checkout: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    trap = f"make && rm -rf sub && ln -s {outside} sub"
    commit(checkout, {"sub/one.h": "1\n"})
    make(checkout, resolve(checkout, commands=(trap,)))
    head = commit(checkout, {"sub/one.h": "2\n", "answer.c": ANSWER % 5})
    assert make(checkout, resolve(checkout, commands=(trap,))) == 5
    assert not list(outside.iterdir())
    assert head


def test_a_wheel_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_files, "MAX_ENTRIES", 5)
    monkeypatch.setattr(wheel_files, "MAX_UNPACKED_BYTES", 1 << 20)
    many = {f"f{i}": b"" for i in range(5)}
    for name, files in {"many": many, "bomb": {"x": bytes(1 << 20)}, "outside": {"../x": b""}}.items():
        wheel = make_wheel(tmp_path, name, "1.0", extra_files=files)
        with pytest.raises(BuildFailedError, match=name):
            check_wheel(wheel)
    (tmp_path / "no.whl").write_bytes(b"no archive")
    with pytest.raises(BuildFailedError, match="is no wheel"):
        check_wheel(tmp_path / "no.whl")
