"""`assay simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bot.cli.service.simulate import command
from bot.errors import UsageError
from bot.store import Database, now
from bot.store.models import Campaign, CampaignState
from bot.store.step_cost import StepCost


def simulate(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(
        command, [*arguments, "--json"], catch_exceptions=False, standalone_mode=False
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_same_seed_same_figures() -> None:
    first, again, other = (simulate("--minutes", "3", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
    assert first["needed"]["turnaround_p95_s"] <= first["p95_s"] == 600.0
    assert simulate("--minutes", "3", "--seed", "1", "--runners", "9")["given"]["runners"] == 9


def test_a_trace_is_multiplied_to_the_number_of_pull_requests(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("2026-11-20T09:00:00Z\n2026-11-20T15:00:00+00:00\n")
    found = simulate("--minutes", "1", "--trace", str(tmp_path / "trace"), "--pulls", "10", "--days", "2")
    assert found["campaigns"] == pytest.approx(200, abs=2)
    (tmp_path / "trace").write_text("yesterday\n")
    with pytest.raises(UsageError, match="line 1"):
        simulate("--minutes", "1", "--trace", str(tmp_path / "trace"))


def test_times_that_the_service_measured_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        for number in range(20):
            costs = {step: StepCost(runs=1, seconds=30.0).to_json() for step in ("running_head", "reducing")}
            session.add(Campaign(target="t", head=f"{number}", trigger="push", state=CampaignState.DONE.value,
                                 costs=costs, created_at=now(), updated_at=now()))  # fmt: skip
    found = simulate()
    assert (found["measured_campaigns"], found["mean_service_s"]) == (20, 60.0)
    with database.transaction() as session:
        session.delete(session.get_one(Campaign, 1))
    database.close()
    with pytest.raises(UsageError, match="--minutes"):
        simulate()
