from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.cli.campaigns.rungs import RungResult, parse_rungs, run_rungs
from bot.errors import UsageError
from fuzzing import backends


def test_rungs_run_from_the_cheapest_to_the_whole_compiler() -> None:
    assert parse_rungs("inductor", "inductor,dynamo") == ("dynamo", "inductor")
    last = backends.get("inductor").rungs["inductor"]
    assert backends.get("inductor").non_default_options(last) == {}


@pytest.mark.parametrize(
    ("backend", "text", "message"),
    [
        ("inductor", "dinamo", "did you mean 'dynamo'"),
        ("inductor", ",", "name some of dynamo, aot, inductor"),
        ("openvino", "dynamo", "openvino has no rungs"),
    ],
)
def test_other_rungs_are_refused(backend: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_rungs(backend, text)


def test_every_rung_has_what_passed_the_one_before() -> None:
    seen: list[tuple[str, dict[str, str], Sequence[str] | None]] = []

    def run(name: str, options: dict[str, str], seconds: float, cases: Sequence[str] | None) -> RungResult:
        assert 0 < seconds <= 60
        seen.append((name, options, cases))
        return RungResult(name, {}, [case for case in cases or "abc" if case != name[0]])

    done = run_rungs("inductor", ("dynamo", "aot", "inductor"), {"dynamic": "on"}, 60, run)
    assert [one.passed for one in done] == [["a", "b", "c"], ["b", "c"], ["b", "c"]]
    assert [cases for _, _, cases in seen] == [None, ["a", "b", "c"], ["b", "c"]]
    assert seen[1][1] == {"dynamic": "on", "torch_backend": "aot_eager"}


def test_no_rung_follows_one_that_was_interrupted() -> None:
    def run(name: str, *_: object) -> RungResult:
        return RungResult(name, {}, ["a"])

    assert [one.name for one in run_rungs("inductor", ("dynamo", "aot"), {}, 60, run, lambda: True)] == [
        "dynamo"
    ]


def test_nothing_is_left_to_run_where_nothing_passes() -> None:
    done = run_rungs("inductor", ("dynamo", "aot"), {}, 60, lambda name, *_: RungResult(name, {}, []))
    assert [one.name for one in done] == ["dynamo"]
