"""Processes that a case leaves: none outlives its worker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzzing.execute.sandbox.isolation import LEVELS
from fuzzing.execute.sandbox.launch import sandboxed_command
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute import probe_runner

LEVEL = pytest.mark.parametrize("level", LEVELS)
_DEADLINE_S = 30.0


def leave_a_daemon(given: dict[str, Any]) -> object:
    """As a daemon starts: of a session of its own, and nobody's child."""
    import os
    import time

    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", given["marker"]])
        os._exit(0)
    os.wait()
    time.sleep(0.1)
    if given["crash"]:
        os.abort()
    return "left"


def daemons(marker: str) -> list[int]:
    """The processes whose command line ends with `marker`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words:
            found.append(int(path.parent.name))
    return found


def mentioning(marker: str) -> list[int]:
    """The processes whose command line has `marker` in it, as those of a launcher have its folders."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def end_of(marker: str, find: Callable[[str], list[int]] = daemons) -> list[int]:
    """Those that are still there after a while."""
    until = time.monotonic() + _DEADLINE_S
    while (left := find(marker)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


@pytest.fixture
def marker(request: pytest.FixtureRequest) -> str:
    """A number of seconds that no other process sleeps."""
    return f"{700_000 + os.getpid()}.{abs(hash(request.node.name)) % 10**6}"


@LEVEL
@pytest.mark.parametrize(
    ("crash", "fresh"), [(False, False), (False, True), (True, True)], ids=["forkserver", "fresh", "crash"]
)
def test_no_daemon_outlives_its_worker(marker: str, level: str, crash: bool, fresh: bool) -> None:
    options = {"marker": marker, "crash": crash}
    supervisor: Supervisor[str] = Supervisor(
        probe_runner.command(options=options, isolation=level), fresh=fresh
    )
    found = probe_runner.answers(supervisor, {"": probe_runner.source(leave_a_daemon)})
    supervisor.close()
    if supervisor.isolation != level:
        pytest.skip(f"this machine refuses {level}")
    assert found[""] == ("left" if not crash else "SIGABRT: ")
    assert end_of(marker) == []


def leave_a_fork(given: dict[str, Any]) -> object:
    """A copy of the worker, with its pipes, that outlives it."""
    import os
    import time

    if os.fork() == 0:
        os.setsid()
        time.sleep(float(given["marker"]))
        os._exit(0)
    time.sleep(0.1)
    os.abort()


@LEVEL
@pytest.mark.parametrize("leave", [leave_a_daemon, leave_a_fork])
def test_what_a_crash_leaves_makes_no_hang_and_the_next_worker_does_not_meet_it(
    marker: str, level: str, leave: Callable[[dict[str, Any]], object]
) -> None:
    options = {"marker": marker, "crash": True}
    supervisor: Supervisor[str] = Supervisor(probe_runner.command(options=options, isolation=level))
    probes = {"": probe_runner.source(leave), "next": "result = 1"}
    try:
        ends = {name: one.ending for name, one in supervisor.run(probe_runner.cases(probes))}
        assert ends == {"": "killed", "next": "returned"}
        assert end_of(marker) == []
    finally:
        supervisor.close()


@LEVEL
def test_a_killed_launcher_takes_its_program_along(marker: str, level: str, tmp_path: Path) -> None:
    command = sandboxed_command(["/bin/sleep", marker], writable=[tmp_path], best=level)
    with subprocess.Popen(command, cwd=tmp_path, env={}) as process:
        until = time.monotonic() + _DEADLINE_S
        while not daemons(marker) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert end_of(marker, mentioning) == []


@LEVEL
def test_nothing_of_a_launcher_stays(level: str, tmp_path: Path) -> None:
    command = sandboxed_command(["/bin/true"], writable=[tmp_path], best=level)
    subprocess.run(command, cwd=tmp_path, env={}, timeout=600, check=True)
    assert end_of(str(tmp_path), mentioning) == []


@LEVEL
@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_the_launcher_ends_as_its_program(level: str, program: str, code: int, tmp_path: Path) -> None:
    command = sandboxed_command([sys.executable, "-I", "-S", "-c", program], writable=[tmp_path], best=level)
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, timeout=600, check=False)
    assert done.returncode == code
