"""Limits of what a worker's processes and files use together."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.execute.limits import Limits
from fuzzing.execute.process_usage import resident_bytes, unnamed_file_bytes
from fuzzing.execute.sandbox.isolation import LANDLOCK, NAMESPACES
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

BACKEND = str(Path(__file__).parent / "misbehaving_backend.py")
MIB = 1 << 20

pytestmark = pytest.mark.parametrize("isolation", [LANDLOCK, NAMESPACES])

FAMILY = """
import os, time
for _ in range(3):
    if not os.fork():
        hoard = os.urandom(150 << 20)
        time.sleep(3600)
time.sleep(3600)
"""
SHARING = """
import os, time
hoard = os.urandom(150 << 20)
children = [os.fork() for _ in range(3)]
time.sleep(1.5)
if not all(children): os._exit(0)
"""
MANY_FILES = """
import time
for number in range(100):
    with open(f"{number}", "wb") as file: file.write(bytes(1 << 20))
time.sleep(3600)
"""
MANY_NAMES = """
import os, time
for number in range(10_000): os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY))
time.sleep(3600)
"""
NO_NAME = """
import os, time
held = [os.open("one", os.O_CREAT | os.O_RDWR | os.O_EXCL), os.unlink("one")]
for _ in range(100): os.write(held[0], bytes(1 << 20))
time.sleep(3600)
"""
IN_MEMORY = """
import os, time
held = os.memfd_create("held")
for _ in range(100): os.write(held, bytes(1 << 20))
time.sleep(3600)
"""
MANY_PROCESSES = """
import os, time
for _ in range(30):
    if not os.fork(): time.sleep(3600)
time.sleep(3600)
"""
NESTED = """
import os
for _ in range(2_000):
    os.mkdir("d")
    os.chdir("d")
"""


def run(programs: list[str], limits: Limits, isolation: str) -> list[Execution]:
    command = WorkerCommand(sys.executable, BACKEND, limits=limits, isolation=isolation)
    supervisor: Supervisor[int] = Supervisor(command)
    cases = [
        TestCase(OnnxModel(f"run:python {text}".encode()), (), Provenance("tests", f"{number}", "", "", ""))
        for number, text in enumerate(programs)
    ]
    found = dict(supervisor.run(enumerate(cases)))
    if supervisor.isolation != isolation:
        pytest.skip(f"this kernel gives {supervisor.isolation}, not {isolation}")
    return [found[number] for number in range(len(cases))]


def test_memory_of_all_processes_counts_together(isolation: str) -> None:
    """None of them exceeds the limit alone."""
    (execution, after) = run([FAMILY, "pass"], Limits(memory_bytes=350 * MIB), isolation)
    assert execution.ending == "out_of_memory"
    assert execution.peak_bytes > 350 * MIB
    assert after.ending == "returned"


def test_memory_that_processes_share_counts_once(isolation: str) -> None:
    (execution,) = run([SHARING], Limits(memory_bytes=450 * MIB), isolation)
    assert execution.ending == "returned", execution


@pytest.mark.parametrize("program", [MANY_FILES, MANY_NAMES, NO_NAME, IN_MEMORY])
def test_files_count_together(program: str, isolation: str) -> None:
    (execution, after) = run([program, "pass"], Limits(scratch_bytes=60 * MIB), isolation)
    assert execution.ending == "out_of_disk"
    assert after.ending == "returned"


def test_processes_count(isolation: str) -> None:
    (execution, after) = run([MANY_PROCESSES, "pass"], Limits(processes=20), isolation)
    assert (execution.ending, after.ending) == ("out_of_processes", "returned")


def test_folders_of_any_depth_leave_nothing_behind(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    executions = run([NESTED, "pass"], Limits(), isolation)
    assert [execution.ending for execution in executions][1] == "returned"
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_uses_is_read(isolation: str) -> None:
    del isolation
    own = os.getpid()
    assert resident_bytes(own) > MIB
    with tempfile.TemporaryFile() as file:
        before = unnamed_file_bytes(own)
        file.write(os.urandom(3 * MIB))
        file.flush()
        assert unnamed_file_bytes(own) - before >= 3 * MIB
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()
    assert (resident_bytes(gone.pid), unnamed_file_bytes(gone.pid)) == (0, 0)
