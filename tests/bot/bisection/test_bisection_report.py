"""The same bug in other words: when it counts, how surely, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.bisection.decision_rule import DecisionRule
from bot.bisection.release_probe import bisect_releases
from bot.bisection.releases import Range
from bot.bisection.report import format_lines, result_to_json
from bot.bisection.search import MIN_CONFIDENCE, REWORDED_CONFIDENCE, ResultKind, max_probed
from bot.bugs.first_bad_release import is_reportable
from tests.bot.bisection.test_release_probe import PASS, RAISES, REWORDS, WRONG, World, query

WANTED = Range.parse("openvino:1.0..1.9")


def ask(world: World, *, fixed_by: bool = False) -> dict[str, Any]:
    asked = query(fixed_by=fixed_by)
    answer, release_probe = bisect_releases(world.release_probe(asked), len(world.does), DecisionRule())
    return result_to_json(asked, WANTED, list(world.does), answer, release_probe, 1.0)


def test_where_no_release_is_next_to_a_clean_one_in_the_same_words_others_count(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [PASS], "1.2": [REWORDS], "1.3": [RAISES]})
    output = ask(world)
    assert (output["kind"], output["release"], output["before"]) == (
        ResultKind.UNRELIABLE.value,
        "1.2",
        "1.1",
    )
    assert 0.7 < output["confidence"] <= REWORDED_CONFIDENCE < MIN_CONFIDENCE
    told_ = format_lines(output)
    assert told_[0] == "perhaps began to fail in openvino 1.2; openvino 1.1 does not fail"
    assert told_[1] == (
        "  1.2 fails with another message, taken for the same bug: phase and verdict are the same, "
        "and the words "
        "adder, broken"
    )
    assert is_reportable(output), "with the doubt"
    assert world.ran == {"1.0": 2, "1.1": 10, "1.2": 2, "1.3": 2}, "what was run is not run again"


def test_the_same_words_next_to_a_clean_release_are_enough(tmp_path: Path) -> None:
    world = World(
        tmp_path, {"1.0": [PASS], "1.1": [REWORDS], "1.2": [REWORDS], "1.3": [PASS], "1.4": [RAISES]}
    )
    output = ask(world)
    assert (output["kind"], output["release"], output["before"], output["doubt"]) == (
        "found",
        "1.4",
        "1.3",
        "",
    )


def test_where_many_have_other_words_not_all_are_tried(tmp_path: Path) -> None:
    words = [PASS] * 40 + [REWORDS] * 80 + [RAISES]
    world = World(tmp_path, {f"1.{place}": [word] for place, word in enumerate(words)})
    output = ask(world)
    assert (output["release"], output["before"]) == ("1.40", "1.39")
    assert len(world.ran) <= max_probed(len(words)) + 3


def test_other_words_away_from_the_change_cost_no_release(tmp_path: Path) -> None:
    words = [PASS] * 40 + [RAISES] * 10 + [REWORDS] * 30 + [RAISES] * 50
    world = World(tmp_path, {f"1.{place}": [word] for place, word in enumerate(words)})
    output = ask(world)
    assert (output["kind"], output["release"], output["before"]) == ("found", "1.40", "1.39")
    assert len(world.ran) <= max_probed(len(words))


def test_a_release_that_fails_otherwise_is_no_fix(tmp_path: Path) -> None:
    newest_first = [PASS] * 20 + [WRONG] * 30 + [RAISES] * 10
    world = World(tmp_path, {f"1.{place}": [word] for place, word in enumerate(newest_first)})
    output = ask(world, fixed_by=True)
    assert (output["kind"], output["release"], output["before"]) == ("unreliable", "1.19", "1.20")
    assert format_lines(output)[1] == ("  1.20 fails in another way; the bug may have been fixed before")
    assert len(world.ran) <= max_probed(len(newest_first)) + 3


def test_another_failure_is_no_other_wording(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [WRONG], "1.2": [RAISES]})
    output = ask(world)
    assert (output["kind"], output["between"], output["doubt"]) == (ResultKind.RANGE.value, ["1.1"], "")


@pytest.mark.parametrize("kind", [ResultKind.NEVER, ResultKind.ERROR, ResultKind.UNRELIABLE])
def test_what_is_no_answer_is_not_told(kind: ResultKind) -> None:
    output: dict[str, Any] = {
        "kind": kind.value,
        "release": "1.1",
        "before": "1.0",
        "doubt": "",
        "untried": [],
    }
    assert not is_reportable(json.loads(json.dumps(output)))
