"""Scratch folders: what a killed supervisor left is removed, what a living one holds is not."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fuzzing.execute.scratch_folder import PREFIX, ScratchFolder, sweep

HOLD = """
import sys
from fuzzing.execute.scratch_folder import ScratchFolder
print(ScratchFolder().path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_folder_of_a_killed_process_is_swept_and_not_before() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        assert sweep() == 0
        assert folder.is_dir()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert sweep() == 1
    assert not folder.exists()


def test_our_own_folders_stay_until_removed() -> None:
    scratch = ScratchFolder()
    assert sweep() == 0
    assert Path(scratch.path).is_dir()
    scratch.remove()
    assert not Path(scratch.path).exists()


def test_nothing_else_is_swept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").write_text("x")
    assert sweep() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{PREFIX}file",
        f"{PREFIX}link",
        "elsewhere",
    ]


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    honest = tempfile.mkdtemp

    def swept_once(**given: str) -> str:
        made.append(honest(**given))
        if len(made) == 1:
            Path(made[0]).rmdir()  # another process's sweep, between the folder's making and its lock
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_once)
    scratch = ScratchFolder()
    assert (len(made), scratch.path) == (2, made[1])
    scratch.remove()
