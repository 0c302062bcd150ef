"""A storm of pushes to one pull request: in its eye nothing moves twice.

`python -m tests.benchmarks scenario --storm` does it with 50 pushes in a minute.
"""

from __future__ import annotations

import pytest

from tests.scenarios.stage import Stage
from tests.scenarios.storm import storm

pytestmark = pytest.mark.slow


def test_a_storm_ends_with_one_comment_on_its_last_commit(stage: Stage) -> None:
    calm = storm(stage, "octo/storm", pushes=12, seconds=3.0)
    assert calm.most_live <= 1
    assert calm.comments == 1
    assert calm.done_heads[-1:] == [calm.last_head]  # slow pushes leave time for an earlier one
    assert len(set(calm.done_heads)) == len(calm.done_heads)
    assert calm.unfinished_checks == 0
