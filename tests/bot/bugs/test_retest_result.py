"""What retests mean."""

from __future__ import annotations

import pytest

from bot.bugs.retest_result import RUNS, RetestResult, count_runs
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

PASS, WRONG, CRASH, UNSUPPORTED = Verdict.PASS, Verdict.WRONG_RESULT, Verdict.CRASH, Verdict.UNSUPPORTED


def outcome(verdict: Verdict) -> Outcome:
    return Outcome(
        case="c" * 64,
        toolchain="t",
        backend="openvino",
        device="CPU",
        verdict=verdict,
        phase=Phase.RUN,
        summary=verdict.value,
        evidence=Evidence(),
    )


def counted(own: list[Verdict], same: list[bool], control: list[Verdict]) -> RetestResult:
    return count_runs([outcome(one) for one in own], same, [outcome(one) for one in control])


@pytest.mark.parametrize(
    ("own", "same", "control", "passed", "output"),
    [
        ([PASS] * 3, [False] * 3, [PASS], True, "passes in all of 3 fresh runs on x"),
        ([PASS] * 3, [False] * 3, [], True, "passes in all of 3 fresh runs on x"),
        ([PASS] * 3, [False] * 3, [CRASH], False, "x is not healthy: the control case fails"),
        ([PASS, WRONG, PASS], [False, True, False], [PASS], False, "fails in 1 of 3 fresh runs on x"),
        ([CRASH] * 3, [False] * 3, [PASS], False, "fails in another way in 3 of 3 fresh runs on x"),
        ([UNSUPPORTED] * 3, [False] * 3, [PASS], False, "fails in another way in 3 of 3 fresh runs on x"),
        ([UNSUPPORTED] * 3, [False] * 3, [], False, "x is not healthy"),
        ([PASS] * 2, [False] * 2, [PASS], False, "passes in all of 2 fresh runs on x"),
    ],
)
def test_only_a_healthy_build_and_enough_runs_show_a_fix(
    own: list[Verdict], same: list[bool], control: list[Verdict], passed: bool, output: str
) -> None:
    seen = counted(own, same, control)
    assert seen.passed is passed
    assert seen.describe("x").startswith(output)


def test_the_bug_in_other_words_is_there_with_a_doubt() -> None:
    runs = [outcome(CRASH)] * 3
    seen = count_runs(runs, [False] * 3, [outcome(PASS)], [True] * 3)
    assert (seen.failed, seen.other, seen.passed) == (3, 0, False)
    assert (
        seen.describe("x") == "fails in 3 of 3 fresh runs on x, with a reworded error: possibly the same bug"
    )
    surely = count_runs(runs, [True, False, False], [outcome(PASS)], [False, True, True])
    assert surely.describe("x") == "fails in 3 of 3 fresh runs on x"


def test_three_are_asked_for() -> None:
    assert RUNS == 3
