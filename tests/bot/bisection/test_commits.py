"""Commits of a branch: what builds the same is one, and only what changes the build is named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.bisection.commits import Revision, describe_result, revisions, search
from fuzzing.outcomes import Outcome, Phase, Verdict


def outcome(digest: str, verdict: Verdict) -> Outcome:
    return Outcome("c" * 64, "openvino", digest, "CPU", verdict, Phase.RUN, "", {})


def classify(seen: Outcome) -> str:
    return {Verdict.CRASH: "bad", Verdict.PASS: "good"}.get(seen.verdict, "other")


class World:
    """Builds by commit; those of `broken` crash, those of `odd` do something third, `gone` cannot be made."""

    def __init__(self, pins: Sequence[str], broken: str, odd: str = "", gone: str = "") -> None:
        self.commits = [f"{at:040x}" for at in range(len(pins))]
        self.pins = dict(zip(self.commits, pins, strict=True))
        self.broken, self.odd, self.gone = broken, odd, gone
        self.ran: list[tuple[str, int]] = []

    def built(self, commit: str) -> tuple[str, str] | None:
        pin = self.pins[commit]
        return None if pin == "?" else (pin * 64, f"compiler {pin}")

    def run(self, commit: str, runs: int) -> list[Outcome] | None:
        pin = self.pins[commit]
        self.ran.append((pin, runs))
        if pin in self.gone:
            return None
        verdict = Verdict.CRASH if pin in self.broken else Verdict.PASS
        return [outcome(pin * 64, Verdict.HANG if pin in self.odd else verdict)] * runs

    def found(self) -> list[Revision]:
        return revisions(self.commits, self.built)


def test_what_builds_the_same_is_one_revision() -> None:
    world = World("aabb?bac", "c")
    assert [(one.commit[-1], one.label[-1]) for one in world.found()] == [
        ("0", "a"),
        ("2", "b"),
        ("6", "a"),
        ("7", "c"),
    ]


def test_the_commit_that_changed_the_pin_is_named() -> None:
    world = World("aabbccdd", "cd")
    answer = search(world.found(), world.run, classify)
    assert (answer["kind"], answer["commit"]["commit"], answer["before"]["commit"]) == (
        "found",
        world.commits[4],
        world.commits[2],
    )
    assert answer["confidence"] > 0.9
    assert describe_result(answer) == (
        f"brought by commit {world.commits[4][:12]} (compiler c); "
        f"commit {world.commits[2][:12]} (compiler b) does not fail; 3 commits between change what is built"
    )


def test_of_two_it_is_the_second_and_nothing_is_run() -> None:
    world = World("aaabb", "b")
    answer = search(world.found(), world.run, classify)
    assert (answer["commit"]["commit"], world.ran) == (world.commits[3], [])
    assert describe_result(answer).endswith("no other changes what is built")


def test_a_range_where_what_lies_between_cannot_be_judged() -> None:
    world = World("abcd", "d", odd="c", gone="b")
    answer = search(world.found(), world.run, classify)
    assert answer["kind"] == "range"
    assert [one["label"] for one in answer["between"]] == ["compiler b", "compiler c"]
    assert "or one of the 2 before it that could not be judged" in describe_result(answer)


def test_a_build_that_comes_back_is_run_once() -> None:
    world = World("abacb", "bc")
    search(world.found(), world.run, classify)
    spent = {pin: sum(runs for one, runs in world.ran if one == pin) for pin in "abc"}
    assert all(runs <= 20 for runs in spent.values())
    assert len(world.ran) <= len(world.found()) + 2


def test_what_does_not_fail_at_head_names_nobody() -> None:
    world = World("abc", "")
    answer = search(world.found(), world.run, classify)
    assert answer["kind"] == "never"
    assert describe_result(answer).startswith("it does not fail at commit ")


@given(st.lists(st.integers(0, 3), min_size=2, max_size=30), st.data())
def test_only_commits_that_change_the_build_are_named(repeats: list[int], data: st.DataObject) -> None:
    pins = [chr(ord("a") + at) for at, more in enumerate(repeats) for _ in range(more + 1)]
    first = data.draw(st.integers(1, len(repeats) - 1))
    world = World(pins, "".join(chr(ord("a") + at) for at in range(first, len(repeats))))
    answer = search(world.found(), world.run, classify)
    named = answer["commit"]["commit"]
    at = world.commits.index(named)
    assert world.pins[named] == chr(ord("a") + first)
    assert world.pins[world.commits[at - 1]] != world.pins[named]


@pytest.mark.parametrize("kind", ["unreliable"])
def test_doubt_is_told(kind: str) -> None:
    world = World("abc", "c")
    answer = search(world.found(), world.run, classify) | {"kind": kind}
    assert describe_result(answer).startswith("perhaps brought by ")
