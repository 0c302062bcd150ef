"""Any command under a recorder: children, crashes, other people's sitecustomize, replay, the program."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from fuzzing.cases import Corpus, TestCase, TorchCall
from fuzzing.errors import InternalError, UnknownNameError, UsageError
from fuzzing.migrate.recorders import base, recording, recording_file
from fuzzing.migrate.recorders.__main__ import main
from fuzzing.migrate.recorders.recording import Recording
from fuzzing.migrate.sources import Skip
from tests.fuzzing.migrate.recorders.samples import call_case

pytestmark = pytest.mark.compiler_torch_eager

CRASHING = """
import os, subprocess, sys
import torch
import sitecustomize

x = torch.ones(2)
assert sitecustomize.__file__ == os.environ["BEHIND"] and sitecustomize.RAN == ["behind"]
torch.sin(x)
if os.fork() == 0:
    torch.cos(x)
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "import torch; torch.tan(torch.ones(2))"], check=True)
subprocess.run([sys.executable, "-E", "-c", "import torch; torch.exp(torch.ones(2))"], check=True)
torch.sinh(x)
os.kill(os.getpid(), 11)
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("crashing")
    script, behind = folder / "crashing.py", folder / "site" / "sitecustomize.py"
    script.write_text(CRASHING)
    behind.parent.mkdir()
    behind.write_text("RAN = ['behind']")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(behind.parent))
        patch.setenv("BEHIND", str(behind))
        return recording.record("torch", [sys.executable, str(script)], folder)


def apis(items: list[TestCase | Skip]) -> list[str]:
    programs = [item.program for item in items if isinstance(item, TestCase)]
    return [program.api for program in programs if isinstance(program, TorchCall)]


def test_a_crash_keeps_what_was_recorded_before(crashed: Recording) -> None:
    assert crashed.exit_code == -signal.SIGSEGV
    assert {"torch.sin", "torch.sinh"} <= set(apis(crashed.items))


def test_children_write_files_of_their_own_if_they_obey_the_environment(crashed: Recording) -> None:
    assert crashed.processes == 3  # the script, its fork, the first of the two it starts
    assert {"torch.cos", "torch.tan"} <= set(apis(crashed.items))
    assert "torch.exp" not in apis(crashed.items)


def test_what_several_processes_call_is_kept_once(crashed: Recording) -> None:
    assert apis(crashed.items).count("torch.ones") == 1


def test_the_interpreter_of_the_command_replays(crashed: Recording) -> None:
    assert crashed.python == sys.executable


def test_what_the_library_does_not_run_again_is_a_skip(tmp_path: Path) -> None:
    good = call_case("torch.relu", (2, 3))
    bad = call_case("torch.linalg.cholesky", (2, 3))
    skip = Skip("t", "a reason")
    items = list(recording.replay(Recording(items=[bad, skip, good]), tmp_path))
    assert items[1:] == [skip, good]
    assert isinstance(items[0], Skip)
    assert (items[0].test, items[0].reason) == (bad.provenance.test, recording.REPLAY_FAILURE)
    assert "cholesky" in items[0].detail


def test_the_program_collects_from_pytest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = tmp_path / "test_of_others.py"
    test.write_text(
        "import torch\n"
        "def test_red():\n"
        "    assert torch.sigmoid(torch.zeros(3)).sum() > 2\n"
        "def test_green():\n"
        "    torch.atan(torch.zeros(3))\n"
    )
    corpus = Corpus(tmp_path / "corpus")
    options = ["--library", "torch", "--corpus", str(corpus.root), "--cwd", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    assert main([*options, "--", *command]) == 0
    *reported, end = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (end["event"], end["command_exit"], end["processes"]) == ("end", 1, 1)
    assert end["seconds"].keys() == {"command", "recording", "replay"}
    assert end["cases"] == end["new"] == len(reported)
    tests = {event["operator"]: event["test"] for event in reported}
    assert tests["sigmoid"] == "test_of_others.py::test_red"
    assert tests["atan"] == "test_of_others.py::test_green"
    assert {case.provenance.source for case in corpus} == {"collected-torch"}
    assert sorted(corpus.ids()) == sorted(event["id"] for event in reported)


def test_a_command_without_the_library_gives_nothing_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--library", "torch", "--corpus", str(tmp_path)]
    assert main([*options, "--", sys.executable, "-c", "print('for people')"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["cases"] == 0
    assert "no process of the command imported torch" in err


@pytest.mark.parametrize(
    ("library", "command", "message"),
    [
        ("torch", "/no/such/command", "cannot run /no/such/command: No such file or directory"),
        ("nothing", "true", "no recorder is called 'nothing'; there are: "),
    ],
)
def test_mistakes_are_told(
    library: str, command: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--library", library, "--corpus", str(tmp_path), "--", command]) == 2
    assert message in capsys.readouterr().err


def test_recorders_are_found_by_their_library() -> None:
    assert base.get("torch").library == "torch"
    assert "torch" in base.names()
    with pytest.raises(UnknownNameError):
        base.get("collect")


def test_a_bug_of_a_recorder_is_raised_in_the_end() -> None:
    bug = recording_file.RecorderError("torch.add", "a test", "Traceback: …")
    with pytest.raises(
        InternalError, match=r"1 calls broke the recorder, the first one torch\.add in a test"
    ):
        recording.raise_recorder_errors(Recording(bugs=[bug]))
    recording.raise_recorder_errors(Recording())


def test_a_command_that_cannot_start_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot run"):
        recording.record("torch", [os.fspath(tmp_path)])
