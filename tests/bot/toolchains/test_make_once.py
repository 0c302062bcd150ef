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

from bot.toolchains.cache import make_once

# The maker waits until the other process has begun too, so that the two really race; what it made is
# counted in a file that both append to.
RACER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    from bot.toolchains.cache import make_once

    folder, log = Path(sys.argv[1]), sys.argv[2]

    def make(partial):
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, b"made\\n")
        (partial / "READY").write_text("x")

    print("begun", flush=True)
    sys.stdin.readline()
    make_once(folder, lambda made: (made / "READY").exists(), make)
    print((folder / "READY").read_text(), flush=True)
""")

DYING = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from bot.toolchains.cache import make_once

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


def test_processes_that_race_make_it_once(tmp_path: Path) -> None:
    folder, log = tmp_path / "tool", tmp_path / "log"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(folder), str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "begun\n"
    assert [racer.communicate("go\n", timeout=60)[0] for racer in racers] == ["x\n"] * 3
    assert log.read_text() == "made\n"


def test_threads_that_race_make_it_once(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    made: list[bool] = []
    barrier = threading.Barrier(4)

    def race() -> None:
        barrier.wait()
        made.append(make_once(folder, ready, make))

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(made) == [False, False, False, True]


def test_what_a_killed_process_left_is_cleared_and_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "tool"
    died = subprocess.run([sys.executable, "-c", DYING, str(folder)], check=False, timeout=60)
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
