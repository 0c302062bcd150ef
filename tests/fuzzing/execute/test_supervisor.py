"""The supervisor against a backend that misbehaves in every way we know."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing.cases import OnnxModel, Provenance, Sequence, Tensor, TestCase
from fuzzing.cases.values import Absent, Value
from fuzzing.errors import ToolchainError
from fuzzing.execute.limits import Limits
from fuzzing.execute.prefetch import MAX_PREFETCH
from fuzzing.execute.sandbox.isolation import LANDLOCK
from fuzzing.execute.supervisor import PREFETCH_BYTES, Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import PIPE_BYTES
from fuzzing.execution import Execution
from fuzzing.outcomes import Phase

BACKEND = str(Path(__file__).parent / "misbehaving_backend.py")
FINE = "none:"
#: A limit for what hangs: what does not must keep it on a machine where a process may not run for a second.
HANGS_S = 3.0


def command(**given: Any) -> WorkerCommand:
    limits, cache = given.pop("limits", Limits()), given.pop("cache", "")
    # Under Landlock, processes have the same numbers inside as outside.
    return WorkerCommand(
        sys.executable, BACKEND, options=given, limits=limits, cache=cache, isolation=LANDLOCK
    )


def case(program: str, *inputs: tuple[str, Value]) -> TestCase:
    return TestCase(OnnxModel(program.encode()), inputs, Provenance("tests", program, "", "", ""))


def run(programs: list[str], supervisor: Supervisor[int]) -> dict[int, Execution]:
    return dict(supervisor.run((n, case(text)) for n, text in enumerate(programs)))


def one(program: str, **given: Any) -> Execution:
    return run([program], Supervisor(command(**given)))[0]


def facts(execution: Execution) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in execution.outputs:
        assert isinstance(value, Tensor)
        found[name] = int(value.array())
    return found


def wait_until_gone(pid: int) -> None:
    """Returns once the process is dead; the kernel takes its time after SIGKILL. Fails after minutes."""
    for _ in range(30000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still alive")


def test_one_worker_serves_many_cases() -> None:
    supervisor: Supervisor[int] = Supervisor(command())
    executions = run([FINE] * 20, supervisor)
    assert len({facts(execution)["pid"] for execution in executions.values()}) == 1
    assert [facts(executions[n])["served"] for n in range(20)] == list(range(1, 21))
    assert supervisor.respawns == 0
    assert supervisor.versions["numpy"] == np.__version__
    assert executions[0].durations.keys() == {"convert", "compile", "run"}


def test_values_of_every_kind_come_back_as_they_went() -> None:
    given: list[tuple[str, Value]] = [
        ("float", Tensor.of(np.array([[1.5, np.nan], [np.inf, -0.0]], np.float32))),
        ("empty", Tensor.of(np.empty((0, 3), np.int64))),
        ("bf16", Tensor("bfloat16", (3,), b"\x80\x3f\x00\x40\xc0\x7f")),
        ("text", Tensor.of(np.array(["a", "", "ü"], object))),
        ("several", Sequence((Tensor.of(np.zeros(2)), Tensor.of(np.ones((1, 1), bool))))),
        ("nothing", Absent()),
    ]
    supervisor: Supervisor[int] = Supervisor(command())
    [(_, execution)] = supervisor.run([(0, case(FINE, *given))])
    assert list(execution.outputs[: len(given)]) == given


@pytest.mark.parametrize(("size", "count"), [(2 * PREFETCH_BYTES, 4), (PREFETCH_BYTES // 4, 16)])
def test_a_large_case_passes_both_ways(size: int, count: int) -> None:
    """Larger than all that may be on its way, and such that several are, each larger than a pipe."""
    assert size > PIPE_BYTES
    big = Tensor.of(np.arange(size // 4, dtype=np.uint32))
    supervisor: Supervisor[int] = Supervisor(command())
    executions = dict(supervisor.run((n, case(FINE, ("big", big))) for n in range(count)))
    assert len(executions) == count
    assert all(execution.outputs[0] == ("big", big) for execution in executions.values())


@pytest.mark.parametrize("phase", ["convert", "compile", "run"])
def test_an_exception_is_reported_with_its_phase(phase: str) -> None:
    execution = one(f"{phase}:raise the shape is wrong")
    assert (execution.ending, execution.phase) == ("raised", Phase(phase))
    assert (execution.error, execution.message) == ("ValueError", "the shape is wrong")
    assert execution.traceback[-1] == "misbehaving_backend.py:_do"


def test_the_functions_of_a_traceback_have_their_classes() -> None:
    execution = one("convert:convert nothing")
    inner = "misbehaving_backend.py:_Converter.convert"
    assert execution.traceback[-2:] == (inner, f"{inner}.number")
    assert one("convert:foreign").traceback[-1].endswith("pass.cc:ns::Pass::run(int)")


@pytest.mark.parametrize("phase", ["convert", "compile", "run"])
def test_a_native_crash_is_charged_to_its_case_and_repeated_in_a_process_of_its_own(phase: str) -> None:
    supervisor: Supervisor[int] = Supervisor(command())
    executions = run([FINE, FINE, f"{phase}:segfault", FINE, FINE, FINE, FINE], supervisor)
    crashed = executions[2]
    assert (crashed.ending, crashed.phase, crashed.signal) == ("killed", Phase(phase), "SIGSEGV")
    assert "Segmentation fault" in crashed.native
    assert "in _do" in crashed.native
    assert {executions[n].ending for n in (0, 1, 3, 4, 5, 6)} == {"returned"}
    assert supervisor.respawns == 2


def test_a_crash_of_the_first_case_costs_one_process() -> None:
    supervisor: Supervisor[int] = Supervisor(command())
    executions = run(["run:segfault", FINE], supervisor)
    assert [executions[n].ending for n in range(2)] == ["killed", "returned"]
    assert supervisor.respawns == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_does_not_die_of_what_another_has_written(workers: int) -> None:
    """OpenVINO's squeeze writes out of bounds; the comparison that ran next in that process was accused."""
    supervisor: Supervisor[int] = Supervisor(command(), workers=workers)
    executions = run([FINE, "run:corrupt", *["run:use"] * 5, "run:segfault", "run:use"], supervisor)
    killed = [n for n, execution in executions.items() if execution.ending == "killed"]
    assert (sorted(executions), killed) == (list(range(9)), [7])


def test_a_crash_while_freeing_belongs_to_the_case() -> None:
    executions = run([FINE, "run:freed", FINE], Supervisor(command()))
    assert [executions[n].ending for n in range(3)] == ["returned", "killed", "returned"]


def test_a_sticky_error_is_reported_and_nothing_more_is_run_where_it_happened() -> None:
    supervisor: Supervisor[int] = Supervisor(command())
    executions = run([FINE, "run:raise the device 3 is lost", FINE, FINE], supervisor)
    assert [executions[n].ending for n in range(4)] == ["returned", "raised", "returned", "returned"]
    assert executions[1].message == "the device 3 is lost"
    first, *rest = (facts(executions[n])["pid"] for n in (0, 2, 3))
    assert len(set(rest)) == 1
    assert first not in rest
    assert supervisor.respawns == 1


def test_an_exit_is_no_answer() -> None:
    executions = run(["compile:exit 7", FINE], Supervisor(command()))
    assert (executions[0].ending, executions[0].exit_code, executions[0].signal) == ("killed", 7, "")
    assert executions[1].ending == "returned"


@pytest.mark.parametrize("phase", ["convert", "compile", "run"])
def test_a_hang_ends_with_its_traceback(phase: str) -> None:
    limits = Limits.from_json({f"{phase}_s": HANGS_S})
    executions = run([f"{phase}:hang", FINE], Supervisor(command(limits=limits)))
    hung = executions[0]
    assert (hung.ending, hung.phase) == ("hung", Phase(phase))
    assert hung.durations[phase] >= HANGS_S
    assert "in _do" in hung.native
    assert "about to hang" in hung.log
    assert executions[1].ending == "returned"


def test_memory_out_of_bounds_is_charged() -> None:
    limits = Limits(memory_bytes=400 << 20)
    executions = run(["run:eat", FINE], Supervisor(command(limits=limits)))
    assert executions[0].ending == "out_of_memory"
    assert executions[0].peak_bytes > 400 << 20
    assert executions[1].ending == "returned"


def test_memory_of_a_program_that_the_compiler_starts_is_charged() -> None:
    """Inductor's C++ compiler is one; it may take more than inductor ever does."""
    eats = "import time; hoard = b'x' * (600 << 20); time.sleep(3600)"
    execution = one(f"compile:compiler {eats}", limits=Limits(memory_bytes=256 << 20))
    assert (execution.ending, execution.phase) == ("out_of_memory", Phase.COMPILE)
    assert execution.peak_bytes > 256 << 20


def test_one_absurd_allocation_raises_inside_the_worker() -> None:
    assert one("run:reserve").error in ("MemoryError", "_ArrayMemoryError")


def test_files_are_bounded() -> None:
    execution = one("run:write", limits=Limits(file_bytes=8 << 20))
    assert execution.error == "OSError"
    assert "File too large" in execution.message


def test_what_others_have_printed_is_no_case_s_fault() -> None:
    """The log is a file, too: 20 cases print more than one may hold."""
    supervisor: Supervisor[int] = Supervisor(command(limits=Limits(file_bytes=8 << 20)))
    executions = run(["run:print " + "x" * (1 << 20)] * 20, supervisor)
    assert {execution.ending for execution in executions.values()} == {"returned"}
    assert supervisor.respawns >= 2


def test_an_exception_without_a_text_is_told_all_the_same() -> None:
    executions = run(["run:mumble", FINE], Supervisor(command()))
    assert (executions[0].error, executions[0].message) == (
        "_MumbledError",
        "(KeyError from its __str__)",
    )
    assert facts(executions[1])["served"] == 1


def test_what_is_printed_goes_to_the_log_not_into_the_answer() -> None:
    executions = run(["run:print noise", "run:raise after the noise"], Supervisor(command()))
    assert executions[0].ending == "returned"
    assert executions[1].log == ""


def test_scribbling_over_every_descriptor_ends_the_worker_but_not_us() -> None:
    executions = run(["run:scribble", FINE, FINE], Supervisor(command()))
    assert executions[0].ending == "killed"
    assert "not a frame" in executions[0].message
    assert {executions[1].ending, executions[2].ending} == {"returned"}


def test_an_answer_that_is_none_is_charged_to_its_case_alone() -> None:
    supervisor: Supervisor[int] = Supervisor(command())
    executions = run([FINE, "run:nonsense", FINE, FINE], supervisor)
    assert [executions[n].ending for n in range(4)] == ["returned", "killed", "returned", "returned"]
    assert "takes 12 bytes, 1 are given" in executions[1].message


def test_children_of_a_killed_worker_die_with_it(tmp_path: Path) -> None:
    child = tmp_path / "pid"
    execution = one(f"run:child {child}", limits=Limits(run_s=HANGS_S), cache=str(tmp_path))
    assert execution.ending == "hung"
    wait_until_gone(int(child.read_text()))


def test_fresh_gives_every_case_a_process() -> None:
    executions = run([FINE] * 4, Supervisor(command(), fresh=True, workers=2))
    assert len({facts(execution)["pid"] for execution in executions.values()}) == 4


def test_several_workers_share_the_cases() -> None:
    executions = run([FINE] * 40, Supervisor(command(), workers=3))
    assert len(executions) == 40
    assert 1 < len({facts(execution)["pid"] for execution in executions.values()}) <= 3


def test_no_secret_reaches_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TEST_SECRET", "hush")
    seen = facts(one(FINE))
    assert (seen["secret"], seen["home"]) == (0, 1)


def test_cases_are_drawn_only_when_needed() -> None:
    drawn: list[int] = []

    def source() -> Iterator[tuple[int, TestCase]]:
        for n in range(1000):
            drawn.append(n)
            yield n, case(FINE)

    supervisor: Supervisor[int] = Supervisor(command())
    results = supervisor.run(source())
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(drawn) <= 2 * MAX_PREFETCH + 1


def test_closing_ends_all_workers() -> None:
    supervisor: Supervisor[int] = Supervisor(command(), workers=2)
    results = supervisor.run((n, case(FINE)) for n in range(100))
    pids = {facts(next(results)[1])["pid"] for _ in range(8)}
    results.close()  # type: ignore[attr-defined]
    for pid in pids:
        wait_until_gone(pid)


def test_a_compiler_that_cannot_be_imported_is_no_verdict() -> None:
    with pytest.raises(ToolchainError, match="no such compiler here"):
        one(FINE, load="raise")


def test_a_compiler_that_dies_while_imported_is_no_verdict() -> None:
    with pytest.raises(ToolchainError, match=r"SIGSEGV"):
        one(FINE, load="segfault")


def test_a_compiler_that_hangs_while_imported_is_no_verdict() -> None:
    with pytest.raises(ToolchainError, match="took more than"):
        one(FINE, load="hang", limits=Limits(import_s=0.5))


def test_a_missing_interpreter_is_no_verdict() -> None:
    supervisor: Supervisor[int] = Supervisor(WorkerCommand("/nowhere/python", BACKEND))
    with pytest.raises(ToolchainError, match="cannot start /nowhere/python"):
        run([FINE], supervisor)
