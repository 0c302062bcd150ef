"""Nurseries: workers forked from a process that has imported the compiler, and when they are not."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzzing.backends import base
from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.execute.forkserver import ForkServer, ForkServerPool
from fuzzing.execute.sandbox.isolation import NAMESPACES, NONE
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.execution import Execution
from tests.fuzzing.execute import probe_runner
from tests.support.process_ends import assert_ends

CRASH = "import ctypes; ctypes.string_at(0)"
_BACKEND = """
import threading
from fuzzing.backends import base
from tests.fuzzing.execute.probing_backend import ProbeBackend

@base.register
class Variant(ProbeBackend):
    name = "variant"
    forkable = {forkable}
    captured = {captured}

    def load(self, device, options):
        super().load(device, options)
        if {threads}:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def here(given: dict[str, Any]) -> object:
    """Where a worker is: its process, its parent, its folders and what lies there."""
    import json
    import os
    import tempfile
    from pathlib import Path

    shared = Path("/dev/shm")
    held = [Path(f"/proc/self/fd/{number}") for number in range(3, 64)]
    found = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "leads": os.getsid(0) == os.getpid() == os.getpgrp(),
        "folders": [str(Path.cwd()), tempfile.gettempdir(), os.environ["HOME"], os.environ["TMPDIR"]],
        "there": os.listdir("."),
        "shared": os.listdir(shared),
        "descriptors": [str(path.readlink()) for path in held if path.is_symlink()],
        "seed": hash("seed"),
        "threads": len(os.listdir("/proc/self/task")),
        "given": given,
    }
    Path("left").touch()
    if given.get("shared"):
        (shared / "left").touch()
        (shared / "folder" / "left").mkdir(parents=True)
    return json.dumps(found)


def kill_parent(given: dict[str, Any]) -> object:
    import os
    import time

    os.kill(os.getppid(), 9)
    time.sleep(60)
    return "alive"


def look_into_parent(given: dict[str, Any]) -> object:
    import os

    open(f"/proc/{os.getppid()}/mem", "rb").close()
    return "open"


def run(programs: list[str], supervisor: Supervisor[int], *, stay: bool = False) -> list[Execution]:
    cases = (
        (place, TestCase(OnnxModel(text.encode()), (), Provenance("tests", str(place), "", "", "")))
        for place, text in enumerate(programs)
    )
    found = dict(supervisor.serve(cases) if stay else supervisor.run(cases))
    return [found[place] for place in sorted(found)]


def told(execution: Execution) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(probe_runner.answer(execution))
    return found


HERE = probe_runner.source(here)
#: Without walls: processes have the same numbers inside as outside.
OUTSIDE = probe_runner.command(isolation=NONE)


def around_a_crash(command: WorkerCommand, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the workers before and after a crash were."""
    before, crash, after = run([HERE, CRASH, HERE], Supervisor(command, **given))
    assert crash.signal == "SIGSEGV"
    assert "Segmentation fault" in crash.native
    return told(before), told(after)


def variant(
    folder: Path, *, forkable: bool = True, threads: bool = False, captured: tuple[str, ...] = ()
) -> WorkerCommand:
    path = folder / "variant.py"
    root = Path(__file__).parents[3]
    path.write_text(
        f"import sys; sys.path.append({str(root)!r})\n"
        + _BACKEND.format(forkable=forkable, threads=threads, captured=captured)
    )
    return WorkerCommand(sys.executable, str(path), isolation=NONE)


def test_a_worker_after_a_crash_is_forked_by_the_same_process() -> None:
    before, after = around_a_crash(probe_runner.command())
    assert before["parent"] == after["parent"] != os.getpid()
    assert before["pid"] != after["pid"]
    assert (before["leads"], after["leads"]) == (True, True)
    assert before["seed"] == after["seed"]


def test_each_worker_has_folders_of_its_own() -> None:
    before, after = around_a_crash(probe_runner.command())
    for seen in (before, after):
        assert len(set(seen["folders"])) == 1
        assert seen["there"] == []
    assert before["folders"] != after["folders"]
    assert not Path(before["folders"][0]).parent.exists()


def test_what_a_worker_leaves_in_shared_memory_is_gone() -> None:
    supervisor: Supervisor[int] = Supervisor(probe_runner.command(options={"shared": "yes"}))
    first, _, second = run([HERE, CRASH, HERE], supervisor)
    if supervisor.isolation != NAMESPACES:
        pytest.skip("without a mount namespace shared memory is the machine's")
    assert told(first)["shared"] == told(second)["shared"] == []


def test_a_worker_holds_nothing_of_its_forkservers() -> None:
    before, after = around_a_crash(probe_runner.command())
    for seen in (before, after):
        kinds = sorted(name.partition(":")[0] for name in seen["descriptors"])
        assert "socket" not in kinds
    assert len(before["descriptors"]) == len(after["descriptors"])


def test_a_fresh_process_is_a_fresh_interpreter() -> None:
    found = [told(one) for one in run([HERE, HERE], Supervisor(OUTSIDE, fresh=True))]
    assert found[0]["parent"] != found[1]["parent"]  # a launcher for each
    assert found[0]["seed"] != found[1]["seed"]


def test_a_fresh_process_may_be_forked_by_a_numbered_interpreter() -> None:
    """As repeats are: equal numbers share an import, others not even the hash seed; 0 shares nothing."""
    supervisor: Supervisor[int] = Supervisor(OUTSIDE, fresh=True, interpreter=lambda place: place % 3)
    found = [told(one) for one in run([HERE] * 6, supervisor)]
    assert len({one["pid"] for one in found}) == 6
    assert len({one["parent"] for one in found}) == 4
    assert len({one["seed"] for one in found}) == 4
    for place in (1, 2):
        assert found[place]["parent"] == found[place + 3]["parent"]
        assert found[place]["there"] == found[place + 3]["there"] == []


def test_the_library_of_programs_is_imported_before_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch takes ten times as long as a small program; a library that is missing fails with the case."""
    monkeypatch.setitem(base.LIBRARIES, "OnnxModel", ("no_such_library", "colorsys"))
    probe = "import sys\nresult = 'colorsys' in sys.modules"
    alone, forked = (
        probe_runner.answer(run([probe], Supervisor[int](OUTSIDE, fresh=fresh))[0]) for fresh in (True, False)
    )
    assert (alone, forked) == ("False", "True")


def test_what_captures_programs_is_imported_before_a_fork_of_a_compiler_that_reads_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """torch.export imports more than torch does; a compiler of plain models needs none of it."""
    monkeypatch.setitem(base.CAPTURE_MODULES, "OnnxModel", ("colorsys",))
    probe = "import sys\nresult = 'colorsys' in sys.modules"
    plain, capturing = (
        probe_runner.answer(run([probe], Supervisor[int](command))[0])
        for command in (OUTSIDE, variant(tmp_path, captured=("OnnxModel",)))
    )
    assert (plain, capturing) == ("False", "True")


def test_the_libraries_of_programs_to_come_are_imported_before_a_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch of reductions may begin with a plain model and go on with calls of torch."""
    monkeypatch.setitem(base.LIBRARIES, "TorchCall", ("colorsys",))
    probe = "import sys\nresult = 'colorsys' in sys.modules"
    command = replace(OUTSIDE, kinds=("OnnxModel", "TorchCall"))
    assert probe_runner.answer(run([probe], Supervisor[int](command))[0]) == "True"


def test_forkservers_may_be_shared_where_the_options_differ() -> None:
    """A worker has the options of its own supervisor, whoever started the interpreter."""
    pool = ForkServerPool()
    found = []
    for options in ({}, {"level": "none"}, {}):
        command = replace(OUTSIDE, options=options)
        supervisor = Supervisor[int](command, fresh=True, interpreter=lambda _: 1, forkservers=pool)
        found += [told(one) for one in run([HERE], supervisor)]
    pool.close()
    assert len({one["parent"] for one in found}) == 1
    assert [one["given"] for one in found] == [{}, {"level": "none"}, {}]


def test_a_forked_worker_may_be_ended_for_others_that_need_its_interpreter() -> None:
    pool = ForkServerPool()
    one, other = (Supervisor[int](OUTSIDE, interpreter=lambda _: 1, forkservers=pool) for _ in range(2))
    found = []
    for supervisor in (one, other, one):
        [seen] = run([HERE], supervisor, stay=True)
        supervisor.renew(only_forked=True)
        found.append(told(seen))
    pool.close()
    assert len({seen["parent"] for seen in found}) == 1
    assert len({seen["pid"] for seen in found}) == 3


def test_a_worker_that_could_not_be_forked_stays(tmp_path: Path) -> None:
    supervisor = Supervisor[int](variant(tmp_path, threads=True), interpreter=lambda _: 1)
    found = []
    for _ in range(2):
        [seen] = run([HERE], supervisor, stay=True)
        supervisor.renew(only_forked=True)
        found.append(told(seen))
    supervisor.close()
    assert found[0]["pid"] == found[1]["pid"]


def test_a_pool_that_is_closed_keeps_nothing() -> None:
    pool = ForkServerPool()
    supervisor = Supervisor[int](OUTSIDE, forkservers=pool)
    [one] = run([HERE], supervisor, stay=True)
    pool.close()
    supervisor.close()
    assert_ends(told(one)["parent"])


def test_a_backend_that_refuses_to_be_forked_has_interpreters_of_its_own(tmp_path: Path) -> None:
    supervisor: Supervisor[int] = Supervisor(
        variant(tmp_path, forkable=False), fresh=True, interpreter=lambda _: 1
    )
    assert len({told(one)["parent"] for one in run([HERE] * 2, supervisor)}) == 2


def test_what_has_threads_after_its_import_is_not_forked(tmp_path: Path) -> None:
    before, after = around_a_crash(variant(tmp_path, threads=True))
    assert before["parent"] != after["parent"]  # a launcher for each
    assert before["threads"] == 2


def test_a_backend_may_refuse_to_be_forked(tmp_path: Path) -> None:
    before, after = around_a_crash(variant(tmp_path, forkable=False))
    assert before["parent"] != after["parent"]  # a launcher for each


def test_a_case_that_kills_the_forkserver_ends_with_it_alone() -> None:
    """Without walls; behind them it cannot (test_isolation.py), where the kernel knows how to forbid it."""
    sources = [HERE, probe_runner.source(kill_parent), HERE]
    before, killed, after = run(sources, Supervisor(probe_runner.command(isolation=NONE)))
    assert killed.ending in ("killed", "out_of_memory")
    assert told(before)["parent"] != told(after)["parent"]


def test_a_case_cannot_look_into_the_forkserver() -> None:
    [seen] = run([probe_runner.source(look_into_parent)], Supervisor(probe_runner.command()))
    assert probe_runner.answer(seen).startswith("PermissionError")


def test_nothing_is_left() -> None:
    before, after = around_a_crash(OUTSIDE)
    assert not Path(before["folders"][0]).parent.exists()
    for pid in (before["pid"], before["parent"], after["pid"]):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_time_of_its_workers_is_ours() -> None:
    """What a campaign costs is read off there, benchmarks and people alike."""
    busy = "import time\nwhile time.process_time() < 0.5: pass\nresult = 0"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run([busy, CRASH, HERE], Supervisor(probe_runner.command()))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime > 0.5


def test_a_forkserver_that_died_while_its_worker_waited_is_replaced() -> None:
    supervisor: Supervisor[int] = Supervisor(OUTSIDE)
    try:
        first = told(run([HERE], supervisor, stay=True)[0])
        ends = os.pidfd_open(first["pid"])
        os.kill(first["parent"], signal.SIGKILL)
        select.select([ends], [], [])  # its worker dies after it, and could answer once more until then
        os.close(ends)
        second = told(run([HERE], supervisor, stay=True)[0])
    finally:
        supervisor.close()
    assert first["parent"] != second["parent"]


def test_one_that_is_still_importing_can_be_ended() -> None:
    before = set(os.listdir("/proc/self/fd"))
    forkserver = ForkServer(probe_runner.command())
    worker = WorkerProcess(forkserver.command, forkserver=forkserver)
    death = worker.end()
    forkserver.close()
    assert death.signal in ("SIGKILL", "SIGTERM")  # the latter before the launcher handles it
    assert not Path(worker.scratch).exists()
    assert set(os.listdir("/proc/self/fd")) <= before  # less, where what another test left was collected


def test_no_process_is_killed_because_a_forkserver_names_it() -> None:
    """The compiler that a forkserver imports may be anyone's: it could name another's process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        forkserver = ForkServer(WorkerCommand("", "none"))
        liar = f"""
import json, socket, sys, time
control = socket.socket(fileno=int(sys.argv[1]))
control.recv(1 << 16)
control.send(json.dumps({{"spawned": {bystander.pid}}}).encode())
time.sleep(60)
"""

        def start(control: socket.socket) -> subprocess.Popen[bytes]:
            number = control.fileno()
            command = [sys.executable, "-c", liar, str(number)]
            return subprocess.Popen(command, pass_fds=[number], start_new_session=True)

        with open(os.devnull, "rb") as nothing:
            number = nothing.fileno()
            descriptors = {"in": number, "out": number, "log": number, "page": number}
            worker = forkserver.spawn(start, {}, descriptors)
            assert worker.wait() == -signal.SIGKILL
        assert worker.pid != bystander.pid
        forkserver.close()
        assert bystander.poll() is None
        bystander.communicate(b"\n")
