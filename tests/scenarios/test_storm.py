"""A storm of pushes to one pull request: in its eye nothing moves twice.

`python -m tests.benchmarks pull-request-scenario --storm` does it with 50 pushes in a minute.
"""

from __future__ import annotations

from tests.scenarios.deployment import Deployment
from tests.scenarios.storm import storm


def test_a_storm_ends_with_one_comment_on_its_last_commit(deployment: Deployment) -> None:
    storm_result = storm(deployment, "octo/storm", pushes=12, seconds=3.0)
    assert storm_result.max_unfinished <= 1
    assert storm_result.comments == 1
    assert storm_result.done_heads[-1:] == [
        storm_result.last_head
    ]  # slow pushes leave time for an earlier one
    assert len(set(storm_result.done_heads)) == len(storm_result.done_heads)
    assert storm_result.unfinished_checks == 0
