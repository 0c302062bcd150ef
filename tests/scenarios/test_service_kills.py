"""A service killed with SIGKILL in the middle of a pull request's life: GitHub ends up the same.

`python -m tests.benchmarks pull-request-scenario` does it 200 times.
"""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.pull_request_lifecycle import kill_points, run_lifecycle


def test_a_killed_service_leaves_the_same(tmp_path: Path) -> None:
    undisturbed = run_lifecycle(tmp_path / "0")
    assert undisturbed.starts == 1
    for turn, kill_point in enumerate(kill_points(7, 2, undisturbed.seconds, undisturbed.writes), 1):
        result = run_lifecycle(tmp_path / str(turn), kill_point)
        assert result.told == undisturbed.told, kill_point
        assert result.starts == 2, kill_point
