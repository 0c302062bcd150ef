from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bot.campaigns.killing import WORLDS
from tests.bot.campaigns.standins import EXPECTED

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_a_kill_at_any_moment_changes_nothing(world: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bot.campaigns.killing", world, str(tmp_path / "lives")]
    (tmp_path / "lives").mkdir()
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stderr
    undisturbed, *disturbed = [json.loads(line) for line in told.stdout.splitlines()]
    _check_undisturbed(undisturbed)
    killed = {one["killed"]: one for one in disturbed}
    assert {"before commit 1", "after commit 1", "before run 1", "after commit 9 always"} <= killed.keys()
    assert len(killed) > 50
    for name, one in killed.items():
        assert one["lives"] >= 2, name
        assert one["rows"] == undisturbed["rows"], name


def _check_undisturbed(one: dict[str, Any]) -> None:
    rows = one["rows"]
    assert one["lives"] == 1
    assert [campaign["state"] for campaign in rows["campaigns"]] == ["done"]
    assert len(rows["findings"]) == len(EXPECTED)
    assert len(rows["effects"]) == 4  # a check run, and an issue for each of three regressions
    assert rows["outcomes"]
    assert rows["repeats"]
