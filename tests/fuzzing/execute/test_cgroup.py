"""Control groups: where one is delegated, what a sandbox gets. A folder stands for the mounted hierarchy."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fuzzing.execute import forkserver
from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox import cgroup, launch
from fuzzing.execute.sandbox.kernel import NotPermitted
from fuzzing.execute.sandbox.launch import sandboxed_command
from fuzzing.execute.sandbox.launcher import NOT_CONFINED
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute import probe_runner


@dataclass
class Hierarchy:
    """A folder in place of /sys/fs/cgroup, and one in place of /proc/self.

    unit  the group that systemd delegates, with the service in its subgroup
    """

    unit: Path
    process: Path

    def move(self, group: str) -> None:
        """Puts the process into a group, by its path from the root."""
        (self.process / "cgroup").write_text(f"4:memory:/\n0::{group}\n")


@pytest.fixture
def hierarchy(tmp_path: Path) -> Hierarchy:
    unit, process = tmp_path / "mount/system.slice/assay.service", tmp_path / "process"
    process.mkdir()
    (unit / "service").mkdir(parents=True)
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (unit / name).touch()
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    try:
        os.setxattr(unit, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system stores no attributes")
    mount = f"41 31 0:38 / {tmp_path}/mount rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
    (process / "mountinfo").write_text(f"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n{mount}")
    made = Hierarchy(unit, process)
    made.move("/system.slice/assay.service/service")
    return made


def test_the_group_that_systemd_delegates_is_found(hierarchy: Hierarchy) -> None:
    assert cgroup.delegated_group(hierarchy.process) == str(hierarchy.unit)


def test_a_namespace_of_groups_has_its_own_root(hierarchy: Hierarchy) -> None:
    info = hierarchy.process / "mountinfo"
    info.write_text(info.read_text().replace("0:38 / ", "0:38 /machine "))
    hierarchy.move("/machine/system.slice/assay.service/service")
    assert cgroup.delegated_group(hierarchy.process) == str(hierarchy.unit)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda one: os.removexattr(one.unit, "user.delegate"), "is not delegated: No data available"),
        (lambda one: os.setxattr(one.unit, "user.delegate", b"0"), "is not delegated with memory and pids"),
        (lambda one: (one.unit / "cgroup.controllers").write_text("cpu pids"), "not delegated with memory"),
        (lambda one: (one.unit / "cgroup.controllers").unlink(), "is not delegated: No such file"),
        (lambda one: one.move("/"), "in the root of its control groups"),
        (lambda one: one.move("/../elsewhere/service"), "in the root of its control groups"),
        (lambda one: (one.process / "mountinfo").write_text(""), "cgroup v2 is not mounted"),
        (lambda one: (one.process / "cgroup").unlink(), "No such file"),
    ],
)  # fmt: skip
def test_why_there_is_none(hierarchy: Hierarchy, spoil: object, reason: str) -> None:
    assert callable(spoil)
    spoil(hierarchy)
    with pytest.raises(NotPermitted, match=reason):
        cgroup.delegated_group(hierarchy.process)


def test_a_sandbox_gets_a_group_with_its_limits_before_its_program_runs(
    hierarchy: Hierarchy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "totals_group", lambda: str(hierarchy.unit))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    old, alive = hierarchy.unit / "assay-4194305", hierarchy.unit / f"assay-{os.getpid()}"
    old.mkdir()  # no process has this number: kernel.pid_max is at most 4194304
    alive.mkdir()
    command = sandboxed_command([sys.executable, "-c", "pass"], writable=[scratch], total_bytes=7 << 30)
    with subprocess.Popen(command, cwd=scratch) as process:
        assert process.wait() == 0
    group = hierarchy.unit / f"assay-{process.pid}"
    assert {file.name: file.read_text() for file in group.iterdir()} == {
        "cgroup.procs": "0",
        "memory.max": str(7 << 30),
        "memory.swap.max": "0",
        "pids.max": "4096",
    }
    assert (hierarchy.unit / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (old.exists(), alive.exists()) == (False, True)


def test_a_sandbox_without_the_group_it_needs_does_not_start(
    hierarchy: Hierarchy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "totals_group", lambda: str(hierarchy.unit / "gone"))
    command = sandboxed_command(["/bin/true"], writable=[tmp_path])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == NOT_CONFINED
    assert "limits of all processes together cannot be set" in done.stderr


def test_the_group_of_an_ended_launcher_is_removed(
    hierarchy: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = hierarchy.unit / "assay-7"
    group.mkdir()
    cgroup.remove(str(hierarchy.unit), 8)  # of another
    assert group.exists()
    cgroup.remove(str(hierarchy.unit), 7)
    assert not group.exists()
    # What is left in one is killed. In the kernel's file system, files do not prevent the removal.
    monkeypatch.setattr(cgroup, "_REMOVE_S", 0.0)
    group.mkdir()
    (group / "cgroup.kill").touch()
    cgroup.remove(str(hierarchy.unit), 7)
    assert (group / "cgroup.kill").read_text() == "1"


def test_a_worker_gets_a_group_and_its_end_removes_it(
    hierarchy: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (launch, forkserver):
        monkeypatch.setattr(module, "totals_group", lambda: str(hierarchy.unit))
    removed = []
    monkeypatch.setattr(cgroup, "remove", lambda parent, pid: removed.append(f"{parent}/assay-{pid}"))
    limits = Limits(memory_bytes=1 << 30, scratch_bytes=1 << 29)
    supervisor: Supervisor[str] = Supervisor(probe_runner.command(limits=limits))
    assert probe_runner.answers(supervisor, {"": "result = 1"}) == {"": "1"}
    groups = list(hierarchy.unit.glob("assay-*"))
    assert [(group / "memory.max").read_text() for group in groups] == [str(3 << 29)]
    assert {str(group) for group in groups} <= set(removed)
