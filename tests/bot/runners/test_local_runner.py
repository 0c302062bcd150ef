"""Shards in processes of their own: what they say, how they end, and that nothing outlives them."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot import processes
from bot.errors import RunnerError, ToolchainError, UsageError
from bot.runners import LocalRunner, Runner, make_runner, run_tool
from bot.runners import process_stream as streaming
from bot.runners.protocol import RunnerOptions
from fuzzing.outcomes import Outcome, Phase, Verdict

PRELUDE = """
import json, os, signal, subprocess, sys, time
def say(event, **fields): print(json.dumps({"event": event} | fields), flush=True)
shard = json.load(open(sys.argv[1]))
def outcome(case, repeat=0): say("outcome", repeat=repeat, outcome=shard["outcomes"][case])
"""


@dataclass(frozen=True)
class FakeShard:
    """A shard for a stand-in program, which gets ready-made outcomes with it."""

    cases: tuple[str, ...] = ("a", "b")
    backend: str = "tiny"
    toolchain: str = "t0"
    device: str = "CPU"
    repeats: int = 1

    def to_json(self) -> dict[str, Any]:
        return {"cases": list(self.cases), "outcomes": {case: outcome(case).to_json() for case in self.cases}}


def outcome(case: str) -> Outcome:
    return Outcome(case, "tiny", "t0", "CPU", Verdict.PASS, Phase.RUN, "fine")


class Program:
    """A stand-in for `fuzzing.execute.shard`, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.stop = threading.Event()

    def runner(self, code: str, slots: int = 1) -> LocalRunner:
        file = self.folder / "program.py"
        file.write_text(PRELUDE + textwrap.dedent(code))
        return LocalRunner(slots, program=(sys.executable, "-I", str(file)))

    def run(self, code: str, shard: FakeShard | None = None) -> list[dict[str, Any]]:
        self.runner(code).run(shard or FakeShard(), self.events.append, self.stop)
        return self.events


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


GOOD = """
say("start", cases=2, versions={"tiny": "1.0"})
outcome("b"); outcome("a")
say("end", outcomes=2, respawns=0, seconds=0.1, stopped="", overhead=None)
"""


def test_events_are_handed_on_as_they_come(program: Program) -> None:
    events = program.run(GOOD)
    assert [event["event"] for event in events] == ["start", "outcome", "outcome", "end"]
    assert [event["outcome"]["case"] for event in events[1:3]] == ["b", "a"]
    assert Outcome.from_json(events[1]["outcome"]) == outcome("b")


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("", r"before its end event: it ended with status 0 and logged nothing"),
        ("sys.exit('no memory')", r"it ended with status 1; its log ends:\nno memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"was killed by SIGSEGV"),
        ('say("start", cases=2); outcome("a")', r"before its end event"),
        ('say("start", cases=2); print(\'{"event": "en\', end="")', r"broke off inside a line: b'.\"event"),
        (
            'say("start", cases=2); say("end", outcomes=0, stopped=""); sys.exit(7)',
            r"after its end .* status 7",
        ),
        ('say("start", cases=2); say("end", outcomes=0, stopped=""); outcome("a")', r"after its end"),
        ('print("hello", file=sys.stderr, flush=True); print("hello")', r"no JSON object: b'hello'"),
        ("print('[1]')", r"no JSON object"),
        ("print('[' * 100000)", r"no JSON object"),
        ("print('\\xff')", r"no JSON object"),
        ("print()", r"no JSON object: b''"),
        ("say('dance')", r"unknown event, 'dance'"),
        ("say(['start'])", r"unknown event"),
        ("print('{}')", r"unknown event, 'None'"),
        ("say('start')", r"'start' event whose 'cases' is not of type int"),
        ("say('start', cases=2, versions={'a': 1})", r"versions that are not text"),
        ("say('start', cases=2); say('start', cases=2)", r"started twice"),
        ("say('end', outcomes=0, stopped='')", r"ended before it started"),
        ('say("start", cases=2); say("end", outcomes=0, stopped="", busy="much")', r"invalid figures"),
        (
            'say("start", cases=2); say("end", outcomes=0, stopped="", phases={"run": -1})',
            r"invalid figures",
        ),
        ("outcome('a')", r"unexpected outcome"),
        ("say('start', cases=2); outcome('a', repeat=1)", r"unexpected outcome: case 'a', run 1"),
        ("say('start', cases=2); outcome('a', repeat=True)", r"'repeat' is not of type int"),
        ("say('start', cases=2); outcome('a'); outcome('a')", r"run 0 of case a twice"),
        ("say('start', cases=2); say('outcome', repeat=0, outcome={})", r"sent an invalid outcome"),
        ("say('start', cases=2); shard['outcomes']['a']['case'] = 'z'; outcome('a')", r"case 'z'"),
        ("say('start', cases=2); shard['outcomes']['a']['toolchain'] = 'x'; outcome('a')", r"another .* 'x'"),
        ("say('error', kind='usage', message='no such corpus')", r"the shard was refused: no such corpus"),
        ("say('error', kind='usage')", r"'message' is not of type str"),
    ],
)
def test_whatever_else_is_said_is_the_runners_trouble(code: str, hint: str, program: Program) -> None:
    with pytest.raises(RunnerError, match=hint) as caught:
        program.run(code)
    assert not isinstance(caught.value, ToolchainError)


def test_a_line_without_end_is_cut_short(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MAX_LINE_BYTES", 100_000)
    with pytest.raises(RunnerError, match="a line of more than 100000 bytes"):
        program.run("while True: sys.stdout.write('x' * 65536)")


def test_trouble_with_the_toolchain_is_told_apart(program: Program) -> None:
    with pytest.raises(ToolchainError, match="cannot import openvino"):
        program.run("say('error', kind='toolchain', message='cannot import openvino'); sys.exit(3)")


def test_a_long_log_is_read_and_only_its_end_kept(program: Program) -> None:
    with pytest.raises(RunnerError) as caught:
        program.run("sys.stderr.write('noise\\n' * 200000 + 'the end'); sys.exit(1)")
    assert str(caught.value).endswith("noise\nthe end")
    assert len(str(caught.value)) < 5000


def test_secrets_stay_here(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSAY_GITHUB_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "UV_INDEX_X_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    seen = program.folder / "seen"
    program.run(f"open({str(seen)!r}, 'w').write(repr(dict(os.environ)))\n" + GOOD)
    assert "PATH" in seen.read_text()
    assert "s3cret" not in seen.read_text()


class Refused(Exception):
    """What a callback raises."""


def test_what_the_callback_raises_ends_the_shard(program: Program) -> None:
    def refuse(event: dict[str, Any]) -> None:
        raise Refused(event["event"])

    pid_file = program.folder / "pid"
    note = f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))"
    runner = program.runner(f"{note}\nsay('start', cases=2); time.sleep(600)")
    with pytest.raises(Refused, match="start"):
        runner.run(FakeShard(), refuse, program.stop)
    assert not alive(int(pid_file.read_text()))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> bool:
    """Whether a process that is not our child ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 600)[0])
    finally:
        os.close(descriptor)


def test_a_stop_lets_the_shard_finish_its_words(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 600.0)
    code = """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    say("start", cases=2)
    signal.sigwait([signal.SIGTERM])
    outcome("a")
    """
    events: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        events.append(event)
        program.stop.set()

    program.runner(code).run(FakeShard(), take, program.stop)
    assert [event["event"] for event in events] == ["start", "outcome"]


def test_a_shard_that_ignores_the_stop_is_killed_with_its_group(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.0)
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    say("start", cases=child.pid)
    print('{"half', end="", flush=True)
    time.sleep(600)
    """
    children: list[int] = []

    def take(event: dict[str, Any]) -> None:
        children.append(event["cases"])
        program.stop.set()

    program.runner(code).run(FakeShard(), take, program.stop)
    assert wait_for_end(children[0])


def test_a_child_left_behind_by_a_good_shard_is_killed(program: Program) -> None:
    code = """
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    say("start", cases=child.pid)
    say("end", outcomes=0, stopped="")
    """
    events = program.run(code)
    assert wait_for_end(events[0]["cases"])


def test_no_slot_is_waited_for_once_stopped(program: Program) -> None:
    program.stop.set()
    assert program.run("sys.exit('must not start')") == []


def test_no_more_shards_at_once_than_slots(program: Program) -> None:
    # Each shard notes itself and waits until it is told to go on; so both slots are in use together,
    # and the third shard can only have begun after one of them ended.
    runner = program.runner(
        """
        say("start", cases=0)
        end = shard["cases"][0]
        while not os.path.exists(end): time.sleep(0.01)
        say("end", outcomes=0, stopped="")
        """,
        slots=2,
    )
    gates = [program.folder / f"gate{number}" for number in range(3)]
    begun = threading.Semaphore(0)
    log: list[str] = []

    def run(gate: Path) -> None:
        def take(event: dict[str, Any]) -> None:
            log.append(event["event"])
            begun.release()

        runner.run(FakeShard(cases=(str(gate),)), take, program.stop)

    threads = [threading.Thread(target=run, args=(gate,)) for gate in gates]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=600)
    assert begun.acquire(timeout=600)
    assert log == ["start", "start"]
    for gate in gates:
        gate.touch()
    for thread in threads:
        thread.join(600)
    open_at_once = [log[:length].count("start") - log[:length].count("end") for length in range(7)]
    assert (len(log), max(open_at_once)) == (6, 2)


ORPHANS = """
import sys, threading
sys.path.insert(0, {tests!r})
from test_local_runner import FakeShard, LocalRunner
runner = LocalRunner(1, program=(sys.executable, "-I", {program!r}))
runner.run(FakeShard(), lambda event: print(event["cases"], flush=True), threading.Event())
"""


def test_if_we_are_killed_no_shard_is_left(program: Program) -> None:
    program.runner("say('start', cases=os.getpid()); time.sleep(600)")
    code = ORPHANS.format(tests=str(Path(__file__).parent), program=str(program.folder / "program.py"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as us:
        assert us.stdout
        shard = int(us.stdout.readline())
        assert alive(shard)
        us.send_signal(signal.SIGKILL)
        us.wait(600)
        assert wait_for_end(shard)


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    runner = LocalRunner(1, program=(str(tmp_path / "nowhere"),))
    with pytest.raises(RunnerError, match=r"No such file"):
        runner.run(FakeShard(), print, threading.Event())


def test_runners_by_name() -> None:
    runner: Runner = make_runner("local", RunnerOptions(slots=2))
    assert isinstance(runner, LocalRunner)
    with pytest.raises(UsageError, match="no runner is called 'moon'; there are: github-actions, local, ray"):
        make_runner("moon", RunnerOptions())
    with pytest.raises(ValueError, match="at least one slot"):
        LocalRunner(0)


@pytest.fixture
def tools(tmp_path: Path) -> tuple[str, ...]:
    """How to start modules that lie in `tmp_path`."""
    (tmp_path / "good.py").write_text(
        "import json, sys\nfor x in sys.argv[1:]: print(json.dumps({'id': x}))\n"
    )
    (tmp_path / "bad.py").write_text("import sys\nprint('{\"id\": 1}')\nsys.exit('no such source')\n")
    (tmp_path / "told.py").write_text('print(\'{"event": "error", "message": "bad corpus"}\')\n')
    start = (
        f"import sys, runpy; sys.path[0] = {str(tmp_path)!r}; sys.argv = sys.argv[1:]; "
        "runpy.run_module(sys.argv[0], run_name='__main__')"
    )
    return (sys.executable, "-c", start)


def test_tools_hand_on_any_object(tools: tuple[str, ...]) -> None:
    events: list[dict[str, Any]] = []
    run_tool("good", ["x", "ü"], events.append, program=tools)
    assert events == [{"id": "x"}, {"id": "ü"}]


def test_tools_that_fail_say_so(tools: tuple[str, ...]) -> None:
    with pytest.raises(RunnerError, match=r"bad ended with status 1; its log ends:\nno such source"):
        run_tool("bad", [], lambda _: None, program=tools)
    with pytest.raises(RunnerError, match="told: bad corpus"):
        run_tool("told", [], lambda _: None, program=tools)


def test_what_a_tool_logs_is_shown_as_it_comes_and_its_last_words_once(
    tools: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "loud.py").write_text(
        "import sys\n"
        "sys.stderr.write('making ')\n"
        "sys.stderr.write('models\\npython -m quiet: is a word like any other\\n')\n"
        "sys.stderr.write('python -m loud: no such thing\\nwrite another\\n')\n"
        'print(\'{"event": "error", "kind": "usage", "message": "no such thing; write another"}\')\n'
        "sys.exit(2)\n"
    )
    shown = io.BytesIO()
    with pytest.raises(UsageError, match=r"^loud: no such thing; write another$"):
        run_tool("loud", [], lambda _: None, program=tools, echo=shown)
    assert shown.getvalue() == b"making models\npython -m quiet: is a word like any other\n"


def test_the_data_plane_is_found_from_anywhere() -> None:
    # The real module, which refuses at once; it shows that the default program can be started.
    with pytest.raises(RunnerError, match=r"json.tool ended with status 2"):
        run_tool("json.tool", ["--no-such-option"], print)


def test_a_shard_is_written_as_json(program: Program) -> None:
    copy = program.folder / "copy.json"
    program.run(f"open({str(copy)!r}, 'w').write(json.dumps(shard))\n" + GOOD)
    assert json.loads(copy.read_text()) == json.loads(json.dumps(FakeShard().to_json()))
