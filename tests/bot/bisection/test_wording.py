"""The same bug in other words: when it counts, how surely, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.bisection.probing import follow
from bot.bisection.releases import Range
from bot.bisection.rule import Rule
from bot.bisection.search import KINSHIP, SURE, Kind
from bot.bisection.telling import lines, told
from bot.bugs.since import worth_telling
from tests.bot.bisection.test_probing import PASS, RAISES, REWORDS, WRONG, World, question

WANTED = Range.parse("openvino:1.0..1.9")


def ask(world: World) -> dict[str, Any]:
    answer, probing = follow(world.probing(question()), len(world.does), Rule())
    return told(question(), WANTED, list(world.does), answer, probing, 1.0)


def test_where_no_release_is_next_to_a_clean_one_in_the_same_words_others_count(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [PASS], "1.2": [REWORDS], "1.3": [RAISES]})
    said = ask(world)
    assert (said["kind"], said["release"], said["before"]) == (Kind.UNRELIABLE.value, "1.2", "1.1")
    assert 0.7 < said["confidence"] <= KINSHIP < SURE
    told_ = lines(said)
    assert told_[0] == "perhaps began to fail in openvino 1.2; openvino 1.1 does not fail"
    assert told_[1] == (
        "  1.2 says it in other words; taken for the same: phase and verdict are the same, and the words "
        "adder, broken"
    )
    assert worth_telling(said), "with the doubt"
    assert world.ran == {"1.0": 2, "1.1": 10, "1.2": 2, "1.3": 2}, "what was run is not run again"


def test_the_same_words_next_to_a_clean_release_are_enough(tmp_path: Path) -> None:
    world = World(
        tmp_path, {"1.0": [PASS], "1.1": [REWORDS], "1.2": [REWORDS], "1.3": [PASS], "1.4": [RAISES]}
    )
    said = ask(world)
    assert (said["kind"], said["release"], said["before"], said["doubt"]) == ("found", "1.4", "1.3", "")


def test_another_failure_is_no_other_wording(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [WRONG], "1.2": [RAISES]})
    said = ask(world)
    assert (said["kind"], said["between"], said["doubt"]) == (Kind.RANGE.value, ["1.1"], "")


@pytest.mark.parametrize("kind", [Kind.NEVER, Kind.ERROR, Kind.UNRELIABLE])
def test_what_is_no_answer_is_not_told(kind: Kind) -> None:
    said: dict[str, Any] = {"kind": kind.value, "release": "1.1", "before": "1.0", "doubt": "", "untried": []}
    assert not worth_telling(json.loads(json.dumps(said)))
