"""PostgreSQL is killed and started again in the middle of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.campaigns.killing import standin_world
from tests.bot.campaigns.restarts import run_campaign
from tests.support import postgres

#: The runs of cases before which the server is killed: cases at head, their repeats, and those at base.
KILLED_AT = (3, 11, 19, 27, 40)

pytestmark = [
    pytest.mark.skipif(bool(postgres.missing()), reason=postgres.missing() or "PostgreSQL is there"),
]


def test_a_restart_of_the_database_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.campaigns.run.shards.BATCH", 4)
    seen = killed = 0
    with postgres.serving() as server:

        def before_run() -> None:
            nonlocal seen, killed
            seen += 1
            if seen in KILLED_AT:
                killed += 1
                server.restart()

        found = {}
        for name in ("calm", "disturbed"):
            (tmp_path / name).mkdir()
            world = standin_world(tmp_path / name)
            if name == "disturbed":
                world.before_run(before_run)
            found[name] = run_campaign(world, server.database(name), len(KILLED_AT))
    assert killed == len(KILLED_AT)
    assert found["calm"]["outcomes"]
    assert [one["state"] for one in found["disturbed"]["campaigns"]] == ["done"]
    assert found["disturbed"] == found["calm"]
