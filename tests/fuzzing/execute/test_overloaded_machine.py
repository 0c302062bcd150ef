"""A process that a busy machine does not let run is waited for: to say where it hangs, and to die by itself.
One that was stopped together with its supervisor is not late.

The time that it gets is asked of the wait itself and never spent: a wait that is long enough lets the process
run, one that is shorter is over at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuzzing.execute import supervisor as module
from fuzzing.execute.forkserver import ForkedWorker
from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox.launch import READABLE_VARIABLE
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.execution import Execution
from tests.fuzzing.execute.test_worker_process import BACKEND, FINE, PATIENCE_S, case

#: How long all are stopped: more than the phases of a case may take together, and than an import.
STOPPED_S = 1000.0
#: So often a worker that is late is looked at, and twice would be enough to end it.
LOOKS = 10
#: For how many seconds a process may not run where there is much more to do than processors, before it writes
#: where it hangs, and between the end of its pipe and its own. Ours, and less than they get.
UNTIL_WRITTEN_S, UNTIL_DEAD_S = 4.0, 15.0


class Late:
    """A process that goes on when somebody waits for it for `late` seconds; they pass in no time.

    path  the file that lets it
    """

    def __init__(self, given: subprocess.Popen[bytes] | ForkedWorker, late: float, path: Path) -> None:
        self._given, self._late, self._path = given, late, path

    @property
    def pid(self) -> int:
        return self._given.pid

    def poll(self) -> int | None:
        return self._given.poll()

    def terminate(self) -> None:
        self._given.terminate()

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None or self._path.exists():  # it was killed, or runs by now
            return self._given.wait(timeout)
        if timeout < self._late:
            raise subprocess.TimeoutExpired("late", timeout)
        self._path.touch()
        return self._given.wait(600)


def run(
    action: str, late: float, path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits | None = None
) -> list[Execution]:
    """The execution of a case that waits for `path`, in a process that is late, and of one behind it."""
    start = WorkerProcess._start

    def started(worker: WorkerProcess, *pipes: int) -> Any:
        return Late(start(worker, *pipes), late, path)

    monkeypatch.setattr(WorkerProcess, "_start", started)
    monkeypatch.setenv(READABLE_VARIABLE, str(path.parent))
    supervisor: Supervisor[int] = Supervisor(
        WorkerCommand(sys.executable, BACKEND, limits=limits or Limits())
    )
    programs = (f"run:{action} {path}", FINE)
    executions = dict(supervisor.run((n, case(text)) for n, text in enumerate(programs)))
    return [executions[n] for n in range(len(programs))]


def test_a_hang_on_a_busy_machine_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung, after = run("deaf", UNTIL_WRITTEN_S, tmp_path / "go", monkeypatch, Limits(run_s=PATIENCE_S))
    assert (hung.ending, hung.signal) == ("hung", "SIGABRT")
    assert "in _do" in hung.native
    assert after.ending == "returned"


def test_a_crash_on_a_busy_machine_is_not_memory_running_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed, after = run("linger", UNTIL_DEAD_S, tmp_path / "go", monkeypatch)
    assert (crashed.ending, crashed.signal) == ("killed", "SIGSEGV")
    assert crashed.native.startswith("Fatal Python error: Segmentation fault")
    assert after.ending == "returned"


class Stopped:
    """The clock of a supervisor that is stopped once, while it waits for a worker; time then passes unseen.

    path  a file that is there when it has looked some times since
    """

    def __init__(self, supervisor: Supervisor[int], when: Callable[[], bool], path: Path) -> None:
        self._select, self._when, self._path = supervisor._selector.select, when, path
        self._passed, self._looks = 0.0, 0

    def monotonic(self) -> float:
        return time.monotonic() + self._passed

    def select(self, timeout: float) -> Any:
        found = self._select(timeout)
        if not self._passed and self._when():
            self._passed = STOPPED_S
        elif self._passed:
            self._looks += 1
            if self._looks > LOOKS:
                self._path.touch()
        return found


@pytest.mark.parametrize("phase", ["import", "convert", "run"])
def test_who_was_stopped_with_us_is_not_late(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is frozen, a machine that is moved, Ctrl-Z: the time is nobody's."""
    path = tmp_path / "go"
    monkeypatch.setenv(READABLE_VARIABLE, str(tmp_path))
    options = {"load": f"until {path}" if phase == "import" else ""}
    supervisor: Supervisor[int] = Supervisor(WorkerCommand(sys.executable, BACKEND, options=options))

    def in_hand() -> bool:
        return any(slot.ready and slot.worker.status().seq for slot in supervisor._slots)

    when = in_hand if phase != "import" else lambda: bool(supervisor._slots)
    clock = Stopped(supervisor, when, path)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=time.sleep))
    monkeypatch.setattr(supervisor._selector, "select", clock.select)
    program = FINE if phase == "import" else f"{phase}:until {path}"
    [(_, execution)] = supervisor.run([(0, case(program))])
    assert execution.ending == "returned"
