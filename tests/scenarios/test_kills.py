"""A service killed with SIGKILL in the middle of a pull request's life: GitHub ends up the same.

`python -m tests.benchmarks scenario` does it 200 times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.story import moments, tell

pytestmark = pytest.mark.slow


def test_a_killed_service_leaves_the_same(tmp_path: Path) -> None:
    undisturbed = tell(tmp_path / "0")
    assert undisturbed.lives == 1
    for turn, moment in enumerate(moments(7, 4, undisturbed.seconds, undisturbed.writes), 1):
        ending = tell(tmp_path / str(turn), moment)
        assert ending.told == undisturbed.told, moment
        assert ending.lives == 2, moment
