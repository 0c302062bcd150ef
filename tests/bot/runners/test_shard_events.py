"""What a shard's process may send."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.errors import RunnerError
from bot.runners.shard_events import ShardEventValidator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

CASE = "a" * 64
BACKEND = Path(__file__).parents[2] / "fuzzing" / "reduce" / "faulty_backend.py"
OUTCOME = Outcome(CASE, "faulty", "t", "CPU", Verdict.PASS, Phase.RUN, "", {}, Evidence())


@pytest.mark.parametrize("backend", ["faulty", str(BACKEND)])
def test_outcomes_bear_the_name_that_a_backends_file_registers(backend: str) -> None:
    taken: list[dict[str, Any]] = []
    shard = Shard(corpus="", cases=(CASE,), backend=backend, toolchain="t", python="", device="CPU")
    validator = ShardEventValidator(shard, taken.append)
    validator.take({"event": "start", "cases": 1, "versions": {}})
    with pytest.raises(RunnerError, match="another toolchain"):
        validator.take(event_of(replace(OUTCOME, backend="tvm")))
    validator.take(event_of(OUTCOME))
    assert [one["event"] for one in taken] == ["start", "outcome"]


def event_of(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a shard sends it."""
    return {"event": "outcome", "repeat": 0, "outcome": outcome.to_json()}
