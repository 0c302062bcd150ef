"""A hostile package: whatever of it runs, at whichever moment of a process, runs behind the walls."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
import uv

from bot.runners.reproducer_run import try_script
from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute.sandbox import launcher
from fuzzing.execute.sandbox.isolation import LANDLOCK, NAMESPACES, NONE
from fuzzing.execute.sandbox.launch import sandboxed_command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from tests.support.venvs import venv_with
from tests.support.wheels import make_wheel

BACKEND = str(Path(__file__).parent / "hostile_backend.py")
#: The moments at which a package's code runs, by the file that holds it.
MOMENTS = {"pth", "sitecustomize", "init", "extension"}

ATTACK = """
import os, socket

def attack(moment):
    for folder in {folders!r}:
        try:
            with open(os.path.join(folder, moment), "w") as file:
                file.write(os.environ.get("ASSAY_WEBHOOK_SECRET", ""))
        except OSError:
            pass
    try:
        socket.create_connection(("127.0.0.1", {port}), 1).close()
    except OSError:
        pass
"""

EXTENSION = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void attack(void) {{
    int file = open("{folder}/extension", O_CREAT | O_WRONLY, 0600);
    if (file >= 0) close(file);
}}
"""


class Target:
    """What the package attacks: a folder outside the walls, and a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)

    @property
    def reached(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} | (
            {"network"} if self._was_connected() else set()
        )

    def _was_connected(self) -> bool:
        try:
            self.server.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    target = Target(tmp_path_factory.mktemp("outside") / "victim")
    with target.server:
        yield target


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, target: Target) -> str:
    """The interpreter of an environment in which the package is installed as any other is."""
    folder = tmp_path_factory.mktemp("toolchain")
    python = venv_with(folder / "venv", "numpy")
    attack = ATTACK.format(folders=[str(target.folder)], port=target.server.getsockname()[1])
    calls = {
        "hostile.pth": "import hostile_attack; hostile_attack.attack('pth')\n",
        "sitecustomize.py": "import hostile_attack; hostile_attack.attack('sitecustomize')\n",
        "hostile_attack.py": attack,
    }
    files = {name: text.encode() for name, text in calls.items()} | {
        "hostile_native.so": build_extension(target)
    }
    init = "import hostile_attack; hostile_attack.attack('init')\n"
    init += "try:\n    import hostile_native\nexcept ImportError:\n    pass\n"
    wheel = make_wheel(folder, "hostile", "1.0", code=init, extra_files=files)
    install = [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-index", "--python", python, wheel]
    subprocess.run([str(word) for word in install], check=True, timeout=600)
    return str(python)


def build_extension(target: Target) -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    source = target.folder.parent / "native.c"
    source.write_text(EXTENSION.format(folder=target.folder))
    built = source.with_suffix(".so")
    include = sysconfig.get_paths()["include"]
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-I{include}", source, "-o", built], check=True, timeout=600
    )
    return built.read_bytes()


def run_case(python: str, isolation: str, *, fresh: bool = False) -> str:
    """Runs a case in a worker of the toolchain; the level that it ran at."""
    supervisor: Supervisor[str] = Supervisor(WorkerCommand(python, BACKEND, isolation=isolation), fresh=fresh)
    case = TestCase(OnnxModel(b"-"), (), Provenance("tests", "hostile", "", "", ""))
    [(_, execution)] = supervisor.run([("", case)])
    assert execution.ending == "returned"
    return supervisor.isolation


@pytest.mark.parametrize("fresh", [False, True], ids=["forkserver", "fresh"])
@pytest.mark.parametrize("level", [NAMESPACES, LANDLOCK])
def test_nothing_of_a_package_runs_outside_the_walls_of_a_worker(
    python: str, target: Target, level: str, fresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "hidden")
    if run_case(python, level, fresh=fresh) != level:
        pytest.skip(f"this machine refuses {level}")
    assert target.reached == set()


def test_nothing_of_a_package_runs_outside_the_walls_of_a_reproducer(python: str, target: Target) -> None:
    assert try_script("import hostile; print('THE BUG SHOWS'); raise SystemExit(1)", python) == 1
    assert target.reached == set()


def test_nothing_of_a_package_runs_outside_the_walls_of_any_program(
    python: str, target: Target, tmp_path: Path
) -> None:
    command = sandboxed_command([python, "-c", "import hostile"], writable=[tmp_path], required=LANDLOCK)
    done = subprocess.run(command, cwd=tmp_path, env={}, timeout=600, check=False)
    if done.returncode == launcher.NOT_CONFINED:
        pytest.skip("this machine allows no isolation")
    assert done.returncode == 0
    assert target.reached == set()


def test_an_interpreter_of_a_package_runs_behind_the_walls(target: Target, tmp_path: Path) -> None:
    """A wheel may put a program of its own where the environment's interpreter was."""
    replaced = tmp_path / "bin" / "python"
    replaced.parent.mkdir()
    replaced.write_text(f"#!/bin/sh\necho x > {target.folder}/interpreter\nexit 3\n")
    replaced.chmod(0o755)
    command = sandboxed_command([str(replaced), "-I"], writable=[], required=LANDLOCK)
    done = subprocess.run(command, cwd=tmp_path, env={}, timeout=600, check=False)
    if done.returncode == launcher.NOT_CONFINED:
        pytest.skip("this machine allows no isolation")
    assert done.returncode == 3
    assert target.reached == set()


def test_a_program_does_not_start_below_the_level_that_it_requires(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = sandboxed_command(
        ["/usr/bin/touch", str(ran)], writable=[tmp_path], best=NONE, required=LANDLOCK
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == launcher.NOT_CONFINED
    assert done.stderr.startswith("isolation landlock is required, this machine allows none")
    assert not ran.exists()


def test_an_interpreter_that_is_not_there_is_the_toolchains_fault(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot start"):
        run_case(str(tmp_path / "python"), NAMESPACES)


def test_the_attacks_succeed_where_there_are_no_walls(python: str, target: Target) -> None:
    """The last test: what it leaves would fail the others."""
    run_case(python, NONE)
    assert target.reached == MOMENTS | {"network"}
    assert not os.environ.get("ASSAY_WEBHOOK_SECRET")
