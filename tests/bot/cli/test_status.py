"""`assay status`, beside a service's database."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, audit, bugs, outbox
from bot.store.models import Campaign, CampaignState, Proposal, Target
from tests.bot.cli.command_helpers import assay

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        session.add(Target(name="o/closed", private=True))
        for state, head in ((CampaignState.RUNNING, "a" * 40), (CampaignState.FAILED, "b" * 40)):
            why = "no such release" if state.ended else ""
            session.add(Campaign(target="o/closed", head=head, trigger="push", ref="refs/heads/main",
                                 owner="me", state=state.value, reason=why,
                                 created_at=NOW, updated_at=NOW))  # fmt: skip
        bugs.record_sighting(
            session, "o/closed", "abc1", "[ONNX] Pad: wrong values", NOW, "already broken at base"
        )
        audit.record(session, "o/closed", "silent", "pull:7", "nothing new in 12 cases", NOW)
        session.add(Proposal(target="o/closed", signature="abc1", effect="e", state="refused", number=9,
                             reason="#9 is closed", branch="b", path="tests/test_pad.py",
                             test="test_pad_values", writer="pytest-function",
                             created_at=NOW, updated_at=NOW))  # fmt: skip
        outbox.enable_kill_switch(session, "all", "wrong reports", NOW)
    database.close()
    return tmp_path


def test_a_line_for_each_repository_private_ones_too(data: Path) -> None:
    result = assay(data, "status", "--json").result
    assert result["paused"] == [{"target": "all", "reason": "wrong reports"}]
    [one] = result["repositories"]
    assert (one["name"], one["running"], one["open_bugs"]) == ("o/closed", 1, 1)
    assert one["last"]["reason"] == "no such release"


def test_all_about_one_with_the_reasons(data: Path) -> None:
    output = assay(data, "status", "o/closed")
    assert output.code == 0, output.err
    for line in ("publishing is paused for everything: wrong reports", "[ONNX] Pad: wrong values",
                 "refused test_pad_values in tests/test_pad.py: #9 is closed",
                 "already broken at base", "assay silent pull:7: nothing new in 12 cases"):  # fmt: skip
        assert line in output.out
    [test] = assay(data, "status", "o/closed", "--json").result["proposals"]
    assert (test["test"], test["state"], test["number"]) == ("test_pad_values", "refused", 9)
    unknown = assay(data, "status", "o/other")
    assert (unknown.code, "unknown repository 'o/other'" in unknown.err) == (2, True)
