"""What the benchmark of old bugs takes for the release that fixed one."""

from __future__ import annotations

import pytest

from tests.benchmarks.signatures_releases import STILL, fixed_by

DID = [
    (["crash", "pass", "pass"], "2"),
    (["pass", "pass", "pass"], "1"),
    (["crash", "pass", "wrong_result"], STILL),
    (["pass", "crash", "pass"], "3"),  # back in between: the last fix counts
    (["crash", "unsupported", "pass"], "3"),
    ([], STILL),
]


@pytest.mark.parametrize(("verdicts", "release"), DID)
def test_the_release_from_which_on_all_pass(verdicts: list[str], release: str) -> None:
    assert fixed_by([(str(place), verdict) for place, verdict in enumerate(verdicts, 1)]) == release
