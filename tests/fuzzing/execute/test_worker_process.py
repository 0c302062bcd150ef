"""How a worker's death is read: who ended it, and what the oracles make of that."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fuzzing import backends
from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox.isolation import LANDLOCK, NAMESPACES
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import WorkerProcess, split_native_traceback
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Outcome, Phase, Verdict

BACKEND = str(Path(__file__).parent / "misbehaving_backend.py")
FINE = "none:"
#: What does answer must do so in this time, on a machine where a process may not run for a second.
PATIENCE_S = 3.0


def case(program: str) -> TestCase:
    return TestCase(OnnxModel(program.encode()), (), Provenance("tests", program, "", "", ""), expected=())


def run(
    *programs: str,
    limits: Limits | None = None,
    cache: str = "",
    response_timeout: float | None = None,
    isolation: str = NAMESPACES,
) -> list[Execution]:
    command = WorkerCommand(
        sys.executable, BACKEND, limits=limits or Limits(), cache=cache, isolation=isolation
    )
    supervisor: Supervisor[int] = Supervisor(command, response_timeout=response_timeout)
    executions = dict(supervisor.run((n, case(text)) for n, text in enumerate(programs)))
    return [executions[n] for n in range(len(programs))]


def verdict(execution: Execution) -> Outcome:
    return decide_outcome(case(FINE), execution, backends.get(BACKEND), "digest", "CPU")


@pytest.mark.parametrize("phase", ["convert", "compile", "run"])
def test_an_abort_of_the_compiler_itself_is_a_crash(phase: str) -> None:
    """SIGABRT is what we send to a hang, too; one that comes by itself is no hang."""
    aborted, after = run(f"{phase}:abort", FINE)
    assert (aborted.ending, aborted.phase, aborted.signal) == ("killed", Phase(phase), "SIGABRT")
    assert aborted.native.startswith("Fatal Python error: Aborted")
    assert "in _do" in aborted.native
    outcome = verdict(aborted)
    assert outcome.verdict is Verdict.CRASH
    assert outcome.summary.startswith("the process died of SIGABRT")
    assert after.ending == "returned"


def test_a_hang_that_we_abort_is_no_crash() -> None:
    [hung] = run("run:hang", limits=Limits(run_s=PATIENCE_S))
    assert (hung.ending, hung.signal) == ("hung", "SIGABRT")
    assert verdict(hung).verdict is Verdict.HANG


def test_sigkill_by_somebody_else_is_memory_running_out(tmp_path: Path) -> None:
    """We did not send it, no compiler sends it to itself: on Linux it is the kernel's OOM killer."""
    pid_file = tmp_path / "pid"

    def kill() -> None:
        for _ in range(30000):
            if pid_file.exists() and (text := pid_file.read_text()):
                os.kill(int(text), signal.SIGKILL)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    killed, after = run(f"compile:wait {pid_file}", FINE, cache=str(tmp_path), isolation=LANDLOCK)
    killer.join()
    assert (killed.ending, killed.phase, killed.signal) == ("out_of_memory", Phase.COMPILE, "SIGKILL")
    assert verdict(killed).verdict is Verdict.OUT_OF_MEMORY
    assert after.ending == "returned"


def test_leaving_python_is_an_exit() -> None:
    left, after = run("compile:leave 3", FINE)
    assert (left.ending, left.phase, left.exit_code, left.signal) == ("killed", Phase.COMPILE, 3, "")
    assert verdict(left).verdict is Verdict.CRASH
    assert after.ending == "returned"


HOSTILE: dict[str, Any] = {
    "no such case": {"seq": 99},
    "a list for a number": {"seq": [1]},
    "no number": {},
    "ready again, with versions that are none": {"ready": True, "versions": [1]},
    "ready again, without versions": {"ready": True},
    "no longer ready": {"ready": False},
    "no times": {"seq": 1, "outputs": []},
    "times that are none": {"seq": 1, "seconds": 3, "outputs": []},
    "outputs that are none": {"seq": 1, "seconds": [0, 0, 0], "outputs": [["x", ["float32", [2], 8]]]},
    "an endless size": {"seq": 1, "seconds": [0], "outputs": [["x", ["float32", [2], float("inf")]]]},
    "a log that is none": {
        "seq": 1, "seconds": [0], "error": "E", "message": "m", "traceback": [], "log": [float("inf"), 0],
    },
    "a log before its beginning": {
        "seq": 1, "seconds": [0], "error": "E", "message": "m", "traceback": [], "log": [-5, -1],
    },
    "frames that are none": {
        "seq": 1, "seconds": [0], "error": "E", "message": "m", "traceback": 3, "log": [0, 0],
    },
}  # fmt: skip


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_case_that_speaks_for_the_worker_harms_itself_alone(header: dict[str, Any]) -> None:
    """A well-formed frame that a case wrote into the pipe: its worker ends, we and the others do not."""
    hostile, *others = run(f"run:frame {json.dumps(header)}", FINE, FINE)
    assert hostile.ending == "killed"
    assert hostile.message
    assert verdict(hostile).verdict is Verdict.CRASH
    assert [other.ending for other in others] == ["returned", "returned"]


@pytest.mark.parametrize("action", ["promise", "trickle"])
def test_a_promise_of_more_bytes_than_come_does_not_keep_us_waiting_for_ever(action: str) -> None:
    """Half a frame swallows the answers behind it, be it that its rest comes byte by byte."""
    hostile, *others = run(f"run:{action}", FINE, FINE, response_timeout=PATIENCE_S)
    assert hostile.ending == "killed"
    assert [other.ending for other in others] == ["returned", "returned"]


def test_a_case_that_hides_behind_a_forged_page_is_ended() -> None:
    """The page says that another case is in hand, and always just begun."""
    [hostile] = run("run:forge", response_timeout=0.3)
    assert hostile.ending == "killed"


def test_neighbors_are_not_accused_of_what_one_wrote_into_the_pipe() -> None:
    programs = [FINE] * 5 + ["run:scribble"] + [FINE] * 5
    endings = [execution.ending for execution in run(*programs)]
    assert endings == ["returned"] * 5 + ["killed"] + ["returned"] * 5


def test_what_a_worker_held_is_gone_with_it() -> None:
    before = set(os.listdir("/proc/self/fd"))
    worker = WorkerProcess(WorkerCommand(sys.executable, BACKEND))
    scratch = Path(worker.scratch)
    assert scratch.is_dir()
    death = worker.end()
    assert death.signal in ("SIGKILL", "SIGTERM")  # the latter before the launcher handles it
    assert not scratch.exists()
    assert set(os.listdir("/proc/self/fd")) <= before  # less, where what another test left was collected


def test_a_worker_that_cannot_be_started_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(ToolchainError, match="cannot make the cache folder"):
        WorkerProcess(WorkerCommand(sys.executable, BACKEND, cache=str(tmp_path / "file" / "cache")))
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_is_no_fault_of_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("fuzzing.execute.scratch_folder.tempfile.mkdtemp", full)
    with pytest.raises(ToolchainError, match=r"No space left on device.*TMPDIR"):
        WorkerProcess(WorkerCommand(sys.executable, BACKEND))
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_what_was_printed_is_told_from_what_faulthandler_saw() -> None:
    native = "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
    assert split_native_traceback(f"some noise\n{native}") == ("some noise\n", native)
    assert split_native_traceback("some noise\n") == ("some noise\n", "")
    twice = f"Fatal Python error: this was only printed\n{native}"
    assert split_native_traceback(twice)[1] == native
