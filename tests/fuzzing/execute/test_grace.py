"""A process that a busy machine does not let run is waited for: to say where it hangs, and to die by itself.

The time that it gets is asked of the wait itself and never spent: a wait that is long enough lets the process
run, one that is shorter is over at once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzing.execute.execution import Execution
from fuzzing.execute.limits import Limits
from fuzzing.execute.nursery import Forked
from fuzzing.execute.process import Command, WorkerProcess
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute.test_process import BACKEND, FINE, PATIENCE_S, case

#: For how many seconds a process may not run where there is much more to do than processors, before it writes
#: where it hangs, and between the end of its pipe and its own. Ours, and less than they get.
UNTIL_WRITTEN_S, UNTIL_DEAD_S = 4.0, 15.0


class Late:
    """A process that goes on when somebody waits for it for `late` seconds; they pass in no time.

    path  the file that lets it
    """

    def __init__(self, given: subprocess.Popen[bytes] | Forked, late: float, path: Path) -> None:
        self._given, self._late, self._path = given, late, path

    @property
    def pid(self) -> int:
        return self._given.pid

    def poll(self) -> int | None:
        return self._given.poll()

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None or self._path.exists():  # it was killed, or runs by now
            return self._given.wait(timeout)
        if timeout < self._late:
            raise subprocess.TimeoutExpired("late", timeout)
        self._path.touch()
        return self._given.wait(600)


def run(
    action: str, late: float, path: Path, monkeypatch: pytest.MonkeyPatch, **limits: float
) -> list[Execution]:
    """The execution of a case that waits for `path`, in a process that is late, and of one behind it."""
    start = WorkerProcess._start

    def started(worker: WorkerProcess, *pipes: int) -> Any:
        return Late(start(worker, *pipes), late, path)

    monkeypatch.setattr(WorkerProcess, "_start", started)
    supervisor: Supervisor[int] = Supervisor(Command(sys.executable, BACKEND, limits=Limits(**limits)))
    programs = (f"run:{action} {path}", FINE)
    executions = dict(supervisor.run((n, case(text)) for n, text in enumerate(programs)))
    return [executions[n] for n in range(len(programs))]


def test_a_hang_on_a_busy_machine_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung, after = run("deaf", UNTIL_WRITTEN_S, tmp_path / "go", monkeypatch, run_s=PATIENCE_S)
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
