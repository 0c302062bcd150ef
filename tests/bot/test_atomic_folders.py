"""A folder is made once and whole, whoever races and whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from bot.atomic_folders import make_once

# Says what it does, and while it makes the folder waits to be told to go on.
RACER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from bot.atomic_folders import make_once

    folder = Path(sys.argv[1])

    def make(partial):
        print("makes", flush=True)
        sys.stdin.readline()
        (partial / "READY").write_text("x")

    print("wants", flush=True)
    make_once(folder, lambda made: (made / "READY").exists(), make)
    print("has", (folder / "READY").read_text(), flush=True)
""")

DYING = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from bot.atomic_folders import make_once

    def make(partial):
        (partial / "half").write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)

    make_once(Path(sys.argv[1]), lambda made: True, make)
""")


def ready(folder: Path) -> bool:
    return (folder / "READY").exists()


def make(partial: Path) -> None:
    (partial / "READY").write_text("made")


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir() if path.name != folder.name)


def test_it_is_made_once_and_then_found(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    assert make_once(folder, ready, make)
    assert not make_once(folder, ready, lambda _: pytest.fail("made again"))
    assert leftovers(folder) == ["tool.lock"]


def racer(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", RACER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "wants\n"
    return process


def test_processes_that_race_make_it_once(tmp_path: Path) -> None:
    first = racer(tmp_path / "tool")
    assert first.stdout
    assert first.stdout.readline() == "makes\n"
    others = [racer(tmp_path / "tool") for _ in range(2)]  # they come while it is being made
    assert first.communicate("go on\n", timeout=600)[0] == "has x\n"
    assert [other.communicate("go on\n", timeout=600)[0] for other in others] == ["has x\n"] * 2
    assert leftovers(tmp_path / "tool") == ["tool.lock"]


def test_threads_that_race_make_it_once(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    made: list[bool] = []
    others = [threading.Thread(target=lambda: made.append(make_once(folder, ready, make))) for _ in range(3)]

    def make_slowly(partial: Path) -> None:
        for thread in others:
            thread.start()
        for thread in others:
            thread.join(0.1)  # they wait for us; without the lock they would be done at once
        assert all(thread.is_alive() for thread in others)
        make(partial)

    assert make_once(folder, ready, make_slowly)
    for thread in others:
        thread.join(600)
    assert made == [False] * 3


def test_what_a_killed_process_left_is_cleared_and_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    died = subprocess.run([sys.executable, "-c", DYING, str(folder)], check=False, timeout=600)
    assert died.returncode == -signal.SIGKILL
    assert not folder.exists()
    assert len(leftovers(folder)) == 2  # the lock, and half a folder
    assert make_once(folder, ready, make)
    assert os.listdir(folder) == ["READY"]
    assert leftovers(folder) == ["tool.lock"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "tool"

    def fail(partial: Path) -> None:
        (partial / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        make_once(folder, ready, fail)
    assert leftovers(folder) == ["tool.lock"]
    assert not folder.exists()


def test_an_unusable_folder_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    folder.mkdir()
    (folder / "old").write_text("x")
    assert make_once(folder, ready, make)
    assert os.listdir(folder) == ["READY"]
    assert leftovers(folder) == ["tool.lock"]
