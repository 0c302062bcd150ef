"""A job killed with SIGKILL before or after any of its commits leaves what one leaves that lived."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
#: What passes, beside what `tests.bot.campaigns.killing` leaves out.
PASSING = {"at", "done_at"}


def settled(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [{name: value for name, value in row.items() if name not in PASSING} for row in found]
        for table, found in rows.items()
    }


@pytest.mark.slow
def test_a_kill_at_any_commit_changes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bot.jobs.killing", str(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert told.returncode == 0, told.stderr
    calm, *killed = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert calm["lives"] == 1
    (bug,) = calm["rows"]["bugs"]
    assert bug["state"] == "closed"
    assert len(calm["rows"]["retests"]) == 2
    kinds = sorted(effect["kind"] for effect in calm["rows"]["effects"])
    assert kinds == ["comment", "comment", "issue_state"], "the proof, and the answer to who asked"
    assert {"before commit 1", "after commit 1", "before commit 3"} <= {
        one["killed"] for one in killed if one["lives"] == 2
    }
    for one in killed:
        assert settled(one["rows"]) == settled(calm["rows"]), one["killed"]
