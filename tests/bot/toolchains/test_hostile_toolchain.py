"""Nothing of a toolchain runs outside the walls: built wheels that attack in every way there is."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.errors import ProvisionError
from bot.isolation import machine_isolation
from bot.runners.reproducer_run import try_script
from bot.toolchains import ToolchainSpec, provision
from fuzzing import backends
from tests.bot.toolchains.test_release_provision import Tiny, use_index
from tests.support import hostile
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.skipif(machine_isolation().level == "none", reason="this machine has no walls")

WAYS = {
    "start": "",  # the .pth file and sitecustomize alone
    "import": "import hostile_payload; hostile_payload.attack('import')\n",
    "atexit": "import atexit, hostile_payload; atexit.register(hostile_payload.attack, 'atexit')\n",
    "subprocess": (
        "import subprocess, sys\n"
        "code = 'import hostile_payload; hostile_payload.attack(\"child\")'\n"
        "subprocess.run([sys.executable, '-c', code])\n"
    ),
    "thread": (
        "import threading, hostile_payload\n"
        "one = threading.Thread(target=hostile_payload.attack, args=('thread',)); one.start(); one.join()\n"
    ),
    "native": "import hostile_native\n",
}


class Stage:
    """A folder for the loot, a port to reach, and an index of hostile wheels."""

    def __init__(self, root: Path, port: int, server: socket.socket) -> None:
        self.root, self.loot, self.server = root, root / "loot", server
        self.loot.mkdir()
        index = root / "index"
        index.mkdir()
        for number, (way, code) in enumerate(WAYS.items(), start=1):
            files = hostile.wheel_files(self.loot, port)
            if way == "native" and shutil.which("cc"):
                suffix = sysconfig.get_config_var("EXT_SUFFIX")
                files[f"hostile_native{suffix}"] = hostile.extension(root, self.loot)
            make_wheel(index, "tinynum", f"{number}.0")
            make_wheel(index, "tinyc", f"{number}.0", code=code, extra_files=files)

    def provision(self, way: str) -> str:
        """The interpreter of the toolchain that attacks this way; the message where it is refused."""
        release = f"{list(WAYS).index(way) + 1}.0"
        spec = ToolchainSpec("release", "tiny", (f"tinyc=={release}",), f"tinyc {release}")
        try:
            return provision(spec, self.root / "data", lambda _: None).python
        except ProvisionError as error:
            return f"refused: {error}"

    def taken(self) -> list[str]:
        """What got out."""
        planted = (path for path in (self.root / "data").rglob("planted"))
        return [path.name for path in (*self.loot.iterdir(), *planted)] + [
            "connection"
        ] * hostile.connections(self.server)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with hostile.listener() as (port, server):
        monkeypatch.setattr(backends, "get", lambda _: Tiny)
        monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", hostile.SECRET)
        monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")  # uv would start the toolchain's interpreter
        stage = Stage(tmp_path, port, server)
        use_index(tmp_path / "index", tmp_path, monkeypatch)
        yield stage


@pytest.mark.parametrize("way", WAYS)
def test_provisioning_lets_nothing_out(way: str, stage: Stage) -> None:
    answer = stage.provision(way)
    assert stage.taken() == []
    assert hostile.SECRET not in answer


def test_a_reproducer_lets_nothing_out(stage: Stage) -> None:
    python = stage.provision("start")
    attack = "import hostile_payload; hostile_payload.attack('script')"
    assert try_script(f"{attack}; print('THE BUG SHOWS'); raise SystemExit(1)", python) == 1
    assert stage.taken() == []


def test_the_attack_works_where_there_are_no_walls(stage: Stage) -> None:
    python = stage.provision("native")
    subprocess.run([python, "-c", "import tinyc"], check=False, capture_output=True)
    there = set(stage.taken())
    assert {"written", "connected", "environment", "planted", "connection"} <= there
    assert "constructor" in there or not shutil.which("cc")


def test_a_wheel_that_replaces_the_interpreter_gains_nothing(stage: Stage) -> None:
    program = f'#!/bin/sh\necho out > {stage.loot}/interpreter\nexec {sys.executable} "$@"\n'.encode()
    files = {"tinyc-9.0.data/scripts/python": program, "tinyc-9.0.data/data/bin/python": program}
    make_wheel(stage.root / "index", "tinyc", "9.0", extra_files=files)
    spec = ToolchainSpec("release", "tiny", ("tinyc==9.0",), "tinyc 9.0")
    with contextlib.suppress(ProvisionError):
        provision(spec, stage.root / "data", lambda _: None)
    assert stage.taken() == []
