from __future__ import annotations

from dataclasses import replace

import pytest

from bot.campaigns.classify.changes import describe_change, is_steady
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

TIE = Mismatch("y", "value", "1 of 4 elements are wrong", worst=(2,), got="1", want="0", max_abs=1.0)


def outcome(verdict: Verdict, phase: Phase = Phase.RUN, summary: str = "", **evidence: object) -> Outcome:
    made = replace(Evidence(), **evidence)  # type: ignore[arg-type]
    return Outcome("c" * 64, "standin", "t", "CPU", verdict, phase, summary or verdict.value, evidence=made)


def crash(message: str, error: str = "ValueError") -> Outcome:
    return outcome(Verdict.CRASH, Phase.CONVERT, message, error=error, message=message)


def wrong(**fields: object) -> Outcome:
    return outcome(Verdict.WRONG_RESULT, mismatches=(replace(TIE, **fields),))  # type: ignore[arg-type]


RIGHT, LUCKY = outcome(Verdict.PASS), outcome(Verdict.PASS, excused=(TIE,))


def test_a_pass_changes_where_only_base_equals_the_reference() -> None:
    assert describe_change(LUCKY, RIGHT) == "equals the reference at base, and not at head: pass"
    assert not describe_change(RIGHT, LUCKY)
    assert not describe_change(LUCKY, LUCKY)
    assert not describe_change(RIGHT, RIGHT)


@pytest.mark.parametrize("head", [crash("no converter of Pad"), outcome(Verdict.UNSUPPORTED, Phase.CONVERT)])
def test_a_wrong_result_that_becomes_an_error_is_a_change(head: Outcome) -> None:
    assert describe_change(head, wrong()) == f"wrong_result at base; {head.summary} at head"


def test_regressions_and_fixes_are_not_changes() -> None:
    for head, base in ((wrong(), RIGHT), (RIGHT, wrong()), (crash("no"), outcome(Verdict.UNSUPPORTED))):
        assert not describe_change(head, base)


@pytest.mark.parametrize(
    ("head", "base", "differs"),
    [
        (crash("axis 3 is too large"), crash("axis 4 is too large"), False),
        (crash("axis 3 is too large"), crash("no attribute alpha"), True),
        (crash("axis", "KeyError"), crash("axis"), True),
        (wrong(), wrong(), False),
        (wrong(max_abs=100.0), wrong(got="1.5", max_abs=100.0), False),
        (wrong(), wrong(got="3", max_abs=3.0), True),
        (wrong(got="nan"), wrong(got="nan"), False),
        (wrong(got="True"), wrong(got="False"), True),
        (wrong(worst=(1,)), wrong(), True),
        (wrong(kind="shape", detail="[1] instead of [2]"), wrong(kind="shape", detail="[3]"), True),
        (wrong(output="z"), wrong(), True),
    ],
)
def test_two_failures_differ_by_what_they_show(head: Outcome, base: Outcome, differs: bool) -> None:
    assert bool(describe_change(head, base)) == differs
    assert bool(describe_change(base, head)) == differs


def test_only_what_repeats_is_steady() -> None:
    assert is_steady(LUCKY, [LUCKY, LUCKY], 2)
    assert not is_steady(LUCKY, [LUCKY], 2)
    assert not is_steady(LUCKY, [LUCKY, RIGHT], 2)
    assert not is_steady(wrong(), [wrong(), wrong(got="7", max_abs=7.0)], 2)
    assert not is_steady(crash("no"), [crash("no"), wrong()], 2)
