"""What programs we start may see, and that they end when they must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot import processes
from tests.support.process_ends import assert_ends


def test_only_named_variables_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("LCX", "no")
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "no")
    kept = processes.filtered_environment("PATH", "LC_*", extra={"MORE": "yes"})
    assert set(kept) - {name for name in kept if name.startswith("LC_")} == {"PATH", "MORE"}
    assert kept["LC_TIME"] == "C"


@pytest.mark.parametrize("kill_with_parent", [False, True])
def test_input_output_and_status(tmp_path: Path, kill_with_parent: bool) -> None:
    code = "import os, sys; print(sys.stdin.read() + os.getcwd()); print('e', file=sys.stderr); sys.exit(3)"
    command = [sys.executable, "-I", "-c", code]
    done = processes.run(
        command, env={}, cwd=tmp_path, timeout=600, stdin=b"in ", kill_with_parent=kill_with_parent
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"in {tmp_path}\n".encode(), b"e\n", 3)
    assert done.args == command


def test_a_program_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    code = "import time; time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([sys.executable, "-c", code], env={}, cwd=tmp_path, timeout=0.05, kill_with_parent=True)


#: Starts a program that would live for ten minutes with the pipes of its parent, and prints its id.
_PARENT = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
"""
_ENDS = {
    "in time": ("", 0),
    "with an error": ("sys.exit(3)", 3),
    "by a signal": ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
}


@pytest.mark.parametrize("end", _ENDS)
def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path, end: str) -> None:
    line, code = _ENDS[end]
    done = processes.run([sys.executable, "-c", _PARENT + line], env={}, cwd=tmp_path, timeout=600)
    assert done.returncode == code
    assert_ends(int(done.stdout))


def test_what_a_program_has_started_is_killed_with_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = f"{_PARENT}open({str(told)!r}, 'w').write(str(child.pid)); child.wait()"
    with pytest.raises(subprocess.TimeoutExpired):
        # Long enough to start two interpreters on a busy machine.
        processes.run([sys.executable, "-c", code], env={}, cwd=tmp_path, timeout=5)
    assert_ends(int(told.read_text()))


def test_what_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    code = _PARENT.replace('600)"]', '600)"], start_new_session=True')
    done = processes.run([sys.executable, "-c", code], env={}, cwd=tmp_path, timeout=600)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0


def test_a_tether_to_a_parent_that_is_gone_starts_nothing() -> None:
    command = processes.killed_with_parent([sys.executable, "-c", "print('started')"])
    parent = command.index("-c") + 2
    command[parent] = "1"  # as if our id had changed: the parent is init now
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.stdout, done.returncode) == (b"", 1)


def test_signalling_a_group_that_has_ended_is_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as process:
        process.wait()
    processes.kill_group(process.pid, signal.SIGKILL)


def test_tails() -> None:
    assert processes.tail(b"a\nb\nc\xff\n", lines=2) == "b\nc\ufffd"
    assert processes.first_lines(["", "a", " ", "b", "c"], 2) == "a\nb"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_prints_without_end_is_killed(tmp_path: Path, stream: str) -> None:
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 65536)"
    done = processes.run([sys.executable, "-c", code], env={}, cwd=tmp_path, timeout=600, max_output=1 << 20)
    assert done.returncode == -signal.SIGKILL
    assert done.stderr.endswith(b"\nkilled: it printed more than 1,048,576 bytes\n")
    assert len(done.stdout) + len(done.stderr) < 2 << 20


def test_input_larger_than_a_pipe_and_input_that_nobody_reads(tmp_path: Path) -> None:
    given = b"x" * (5 << 20)
    echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    done = processes.run([sys.executable, "-c", echo], env={}, cwd=tmp_path, timeout=600, stdin=given)
    assert done.stdout == given
    done = processes.run(
        [sys.executable, "-c", "import os; os.close(0)"], env={}, cwd=tmp_path, timeout=600, stdin=given
    )
    assert (done.stdout, done.returncode) == (b"", 0)
