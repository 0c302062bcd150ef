"""What shards cost, summed as they end."""

from __future__ import annotations

from bot.store.step_cost import StepCost

EVENT = {
    "event": "end",
    "outcomes": 10,
    "seconds": 4.0,
    "busy": 6.4,
    "respawns": 1,
    "phases": {"convert": 1.5, "run": 0.5},
    "cached": {"references": 7},
}


def test_events_add_up() -> None:
    one = StepCost.of_event(EVENT, workers=2)
    both = one + StepCost.of_event(EVENT | {"phases": {"run": 1.0, "compile": 2.0}}, workers=2)
    assert (both.runs, both.seconds, both.respawns, both.references) == (20, 8.0, 2, 14)
    assert both.phases == {"convert": 1.5, "run": 1.5, "compile": 2.0}
    assert (one.rate, one.overhead) == (2.5, 1.25)
    assert StepCost.from_json(both.to_json()) == both


def test_what_is_not_told_counts_as_nothing() -> None:
    nothing = StepCost.of_event({"event": "end"}, workers=1)
    assert (nothing.rate, nothing.overhead) == (None, None)
    assert nothing + nothing == nothing
