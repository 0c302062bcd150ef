"""What the sweep over reproducers takes for a bug that shows, and for one that does not."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process_ends import assert_ends
from tests.sweeps import findings
from tests.sweeps.reproducers import Script, instead, scripts, show

ROOT = Path(__file__).parents[3]
HEAD = "# pip install tool==1 numpy\n# tool 1 fails\n"
WRONG = HEAD + "# output y: 1 of 1 elements are wrong\ngot = {got}\n\nassert got == 1, got\n"
RAISES = HEAD + "# Raises ValueError: node n3 lacks an attribute…\nraise {error}\n"
TOOL = (
    HEAD + "# The tool dies of SIGABRT (compile): CalledProcessError.\nimport subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', {tool!r}], check=True)\n"
)
GUARDED = "# Exit code: 1 the bug shows, 0 it does not\nprint({said!r})\nraise SystemExit({code})\n"


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        (WRONG.format(got=2), True),
        (WRONG.format(got=1), False),
        (WRONG.format(got="missing"), False),  # fails before it compares
        (RAISES.format(error="ValueError('node of no name lacks an attribute')"), True),
        (RAISES.format(error="ValueError('another matter')"), False),
        (RAISES.format(error="KeyError('node lacks an attribute')"), False),
        (HEAD + "# The process dies of SIGABRT (run).\nimport os\nos.abort()\n", True),
        (HEAD + "# The process dies of SIGSEGV (run).\nimport os\nos.abort()\n", False),
        (TOOL.format(tool="import os; os.abort()"), True),
        (TOOL.format(tool="raise SystemExit(3)"), False),
        (TOOL.format(tool=""), False),
        (GUARDED.format(said="THE BUG SHOWS: x", code=1), True),
        (GUARDED.format(said="Traceback", code=1), False),
        (GUARDED.format(said="the bug does not show", code=0), False),
    ],
)
def test_a_script_shows_its_bug_as_its_comment_says(text: str, shows: bool) -> None:
    script = Script(Path("a.py"), text, ())
    assert (show(script, Path(sys.executable)) == "shows") is shows


#: Writes the id of a program that it starts, which would live for ten minutes.
STARTS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open({told!r}, "w") as file:
    file.write(str(child.pid))
"""


def test_nothing_is_left_of_a_script_that_does_not_end(tmp_path: Path) -> None:
    script = Script(Path("a.py"), f"{STARTS.format(told=str(tmp_path / 'pid'))}child.wait()\n", ())
    assert show(script, Path(sys.executable), timeout_s=5) == "does not end"
    assert_ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("wait", ["", "; child.wait()"])
def test_nothing_is_left_of_a_finding(tmp_path: Path, wait: str) -> None:
    shown = "print('library: 1', 'compiler: 2', sep='\\n')"
    prelude = f"def start():\n    exec({STARTS.format(told=str(tmp_path / 'pid'))!r}, globals())\n"
    section = findings.Section("A", prelude, (("a", f"{shown}; start(){wait}"), ("b", shown)))
    first, second = findings.told(section, limit_s=5)
    assert first == (True, "does not end" if wait else "2 instead of 1")
    assert second == (True, "2 instead of 1")
    assert_ends(int((tmp_path / "pid").read_text()))


def test_a_finding_that_runs_ends_with_the_sweep(tmp_path: Path) -> None:
    """With the program that the line has started: only the sweep itself is killed."""
    told = tmp_path / "pid"
    prelude = (
        f"def start():\n    exec({STARTS.format(told=str(told))!r}, globals())\n    print('', flush=True)\n"
    )
    sweep = f"""
from tests.support.process_ends import assert_ends
from tests.sweeps import findings
list(findings.told(findings.Section("A", {prelude!r}, (("a", "start(); child.wait()"),))))
"""
    os.mkfifo(told)
    reader = os.open(told, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, "-c", sweep], cwd=ROOT) as process:
        assert select.select([reader], [], [], 60)[0]
        process.kill()
    assert_ends(int(os.read(reader, 100)))
    os.close(reader)


def test_scripts_and_what_they_install(tmp_path: Path) -> None:
    folder = tmp_path / "report" / "reproducers"
    folder.mkdir(parents=True)
    for name in ("a.py", "a.guarded.py", "b.py"):  # of which two are equal
        (folder / name).write_text(WRONG.format(got=2 if name == "a.py" else 3))
    (folder / "c.py").write_text("print()\n")  # installs nothing
    found = list(scripts([tmp_path]))
    assert [(script.finding, script.requirements) for script in found] == [("a", ("tool==1", "numpy"))] * 2
    assert instead(found[0].requirements, "tool==2") == ("tool==2", "numpy")
    assert instead(found[0].requirements, "other==2") == ()
