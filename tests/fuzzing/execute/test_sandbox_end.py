"""A sandbox ends with its program: no process of it is left, however the program or the launcher ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing.execute.sandbox.launch import sandboxed_command
from tests.support.live_service import wait_for


def left(mark: Path) -> list[int]:
    """The processes whose command line names a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.fsencode(mark) in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # it has ended
    return found


@pytest.mark.parametrize("way", ["ends", "fails", "is killed", "launcher is killed"])
def test_no_process_is_left(way: str, tmp_path: Path) -> None:
    code = {"ends": "pass", "fails": "raise SystemExit(3)"}.get(
        way, "import time; print('up', flush=True); time.sleep(600)"
    )
    command = sandboxed_command([sys.executable, "-c", code], writable=[tmp_path])
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        if way.endswith("killed"):
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            process.send_signal(signal.SIGKILL if way == "launcher is killed" else signal.SIGABRT)
        process.wait()
    wait_for(lambda: not left(tmp_path), "the end of every process of the sandbox")
