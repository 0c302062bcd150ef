"""Which stages are asked, about which commits, and whose answer is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from bot.bisection.commit_plan import CommitQuestion
from bot.bisection.commit_range import CommitRange, History
from bot.bisection.commit_search import list_stages, search_commits
from bot.cli.common.options import validate_configuration
from bot.config import ToolchainConfig
from bot.errors import BrokenSourcesError, BuildPendingError, ConfigError
from bot.toolchains.installer import IndexUnreachableError
from tests.bot.bisection.test_commit_sources import LinearHistory
from tests.bot.bisection.test_release_probe import query

BETWEEN = CommitRange("a" * 40, "z" * 40)
FOUND = {"kind": "found", "before": "e" * 40, "release": "f" * 40}
RANGE = {"kind": "range", "before": "c" * 40, "release": "h" * 40}
HORIZON = {"kind": "horizon", "before": None, "release": "a" * 40}
NEVER = {"kind": "never", "before": "z" * 40, "release": None}
ERROR = {"kind": "error", "before": None, "release": None}


@dataclass
class Known:
    """A stage that knows its answer, or fails."""

    name: str
    result: dict[str, Any] | Exception
    asked: list[CommitRange] = field(default_factory=list)

    def search(self, between: CommitRange, _question: CommitQuestion) -> dict[str, Any]:
        self.asked.append(between)
        if isinstance(self.result, Exception):
            raise self.result
        return {**self.result, "range": str(between)}


def search(*stages: Known) -> dict[str, Any]:
    question = CommitQuestion(cast("History", LinearHistory()), query(), lambda *_: {}, lambda _: None)
    return search_commits(stages, BETWEEN, question)


def test_a_stage_after_one_that_names_the_commit_is_not_asked() -> None:
    first, second = Known("index", FOUND), Known("overlay", RANGE)
    assert search(first, second)["stage"] == "index"
    assert second.asked == []


def test_commits_between_two_are_searched_by_the_next_stage() -> None:
    second = Known("source", FOUND)
    answer = search(Known("index", RANGE), second)
    assert second.asked == [CommitRange("c" * 40, "h" * 40)]
    assert (answer["stage"], answer["range"]) == ("source", str(BETWEEN))
    assert [one["stage"] for one in answer["earlier"]] == ["index"]


@pytest.mark.parametrize("doubt", ["across_wheels", "across_provisioners"])
def test_a_doubtful_answer_narrows_nothing(doubt: str) -> None:
    second = Known("source", FOUND)
    assert search(Known("overlay", RANGE | {doubt: True}), second)["stage"] == "source"
    assert second.asked == [BETWEEN]


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        (RANGE, HORIZON, "first"),
        (RANGE, RANGE, "second"),
        (HORIZON, NEVER, "second"),
        (NEVER, ERROR, "first"),
        (FOUND | {"across_provisioners": True}, ERROR, "first"),
    ],
)
def test_the_best_answer_is_taken(first: dict[str, Any], second: dict[str, Any], taken: str) -> None:
    assert search(Known("first", first), Known("second", second))["stage"] == taken


def test_what_is_out_of_time_is_not_asked_again() -> None:
    second = Known("source", FOUND)
    assert search(Known("index", RANGE | {"untried": ["d" * 40]}), second)["stage"] == "index"
    assert second.asked == []


@pytest.mark.parametrize("failure", [ConfigError("no index is named"), BrokenSourcesError("no import")])
def test_a_stage_that_cannot_make_the_commits_is_passed_over(failure: Exception) -> None:
    answer = search(Known("index", failure), Known("source", FOUND))
    assert (answer["stage"], answer["passed_over"]) == ("source", [f"index: {failure}"])
    with pytest.raises(type(failure)):
        search(Known("index", failure))


@pytest.mark.parametrize("failure", [IndexUnreachableError("no answer"), BuildPendingError("waiting", 60.0)])
def test_what_a_retry_may_mend_ends_the_search(failure: Exception) -> None:
    second = Known("source", FOUND)
    with pytest.raises(type(failure)):
        search(Known("index", failure), second)
    assert second.asked == []


@pytest.mark.parametrize(
    ("provisioners", "stages"),
    [
        (["overlay"], ["overlay"]),
        (["artifact", "source"], ["artifact, source"]),
        (["overlay", "source"], ["overlay", "source"]),
        (["artifact", "overlay", "source"], ["artifact", "overlay", "source"]),
        (["index"], ["index", "overlay"]),
        (["index", "source"], ["index", "source"]),
        (["overlay", "index"], ["overlay", "index"]),
    ],
)
def test_provisioners_that_make_each_commit_by_itself_are_one_stage(
    provisioners: list[str], stages: list[str]
) -> None:
    config = validate_configuration({"backend": "tvm"}).model_copy(
        update={"toolchain": ToolchainConfig(provisioner=provisioners)}
    )
    found = list_stages(cast("History", LinearHistory()), BETWEEN, config, Path("data"))
    assert [stage.name for stage in found] == stages


def test_another_compilers_commits_are_not_overlaid_after_an_index() -> None:
    chosen = ToolchainConfig(provisioner=["index"])
    config = validate_configuration({"backend": "openvino"}).model_copy(update={"toolchain": chosen})
    found = list_stages(cast("History", LinearHistory()), BETWEEN, config, Path("data"))
    assert [stage.name for stage in found] == ["index"]
