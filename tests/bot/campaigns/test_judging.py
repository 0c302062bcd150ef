from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.judging import NO_BASE, Runs, Seen, judge
from bot.store.models import Standing
from fuzzing.outcomes import Outcome, Phase, Verdict


def outcome(verdict: Verdict, phase: Phase = Phase.COMPILE) -> Outcome:
    return Outcome("c" * 64, "standin", "t", "CPU", verdict, phase, verdict.value)


outcomes = st.builds(outcome, st.sampled_from(Verdict), st.sampled_from(Phase))


@st.composite
def runs(draw: st.DrawFn, repeats: int) -> Runs:
    total = draw(st.integers(0, repeats))
    return Runs(draw(st.integers(0, total)), total)


@st.composite
def seen(draw: st.DrawFn) -> Seen:
    repeats = draw(st.integers(1, 5))
    compared = draw(st.booleans())
    base = draw(st.none() | outcomes) if compared else None
    return Seen(
        head=draw(outcomes),
        base=base,
        head_runs=draw(runs(repeats)),
        base_runs=draw(runs(repeats)) if base is not None else Runs(),
        repeats=repeats,
        compared=compared,
    )


ALL = Runs(3, 3)


def plain(head: Verdict, base: Verdict | None, head_runs: Runs = ALL, base_runs: Runs = ALL) -> Seen:
    at_base = None if base is None else outcome(base)
    return Seen(outcome(head), at_base, head_runs, base_runs, 3, compared=True)


@given(seen())
def test_only_what_repeats_on_both_sides_is_a_regression(case: Seen) -> None:
    judgement = judge(case)
    regressed = judgement is not None and judgement.standing is Standing.REGRESSION
    assert regressed == (
        case.head.verdict.accuses
        and case.head_runs == (case.repeats, case.repeats)
        and case.base is not None
        and case.base.verdict is Verdict.PASS
        and case.base_runs == (case.repeats, case.repeats)
    )


@given(seen())
def test_every_accusation_gets_a_standing_and_every_standing_a_reason(case: Seen) -> None:
    judgement = judge(case)
    if case.head.verdict.accuses:
        assert judgement is not None
    if judgement is not None:
        assert judgement.reason
        assert judgement.verdict in {v.verdict for v in (case.head, case.base) if v is not None}


@given(seen())
def test_what_did_not_repeat_beside_a_passing_base_is_flaky(case: Seen) -> None:
    judgement = judge(case)
    passes = case.base is not None and case.base.verdict is Verdict.PASS
    if case.head.verdict.accuses and passes and case.head_runs.agreed < case.head_runs.total:
        assert judgement is not None
        assert judgement.standing is Standing.FLAKY


@given(seen())
def test_k_of_n_never_exceeds_n(case: Seen) -> None:
    judgement = judge(case)
    if judgement is not None:
        for failed, total in (judgement.head, judgement.base):
            assert 0 <= failed <= total <= case.repeats


@given(seen())
def test_lost_support_is_never_called_anything_else(case: Seen) -> None:
    judgement = judge(case)
    if judgement is not None and judgement.verdict is Verdict.UNSUPPORTED:
        assert case.base is not None
        assert case.base.verdict is Verdict.PASS
        assert judgement.standing is Standing.SUPPORT_LOST


@pytest.mark.parametrize(
    ("case", "standing"),
    [
        (plain(Verdict.CRASH, Verdict.PASS), Standing.REGRESSION),
        (plain(Verdict.OUT_OF_MEMORY, Verdict.PASS), Standing.REGRESSION),
        (plain(Verdict.UNSUPPORTED, Verdict.PASS), Standing.SUPPORT_LOST),
        (plain(Verdict.CRASH, Verdict.HANG, base_runs=Runs()), Standing.ALREADY_BROKEN),
        (plain(Verdict.CRASH, Verdict.UNSUPPORTED, base_runs=Runs()), Standing.UNJUDGED),
        (plain(Verdict.CRASH, None, base_runs=Runs()), Standing.UNJUDGED),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=Runs(1, 2)), Standing.FLAKY),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=Runs(2, 2)), Standing.UNJUDGED),
        (plain(Verdict.CRASH, Verdict.PASS, head_runs=Runs(2, 2)), Standing.UNJUDGED),
        (plain(Verdict.PASS, Verdict.WRONG_RESULT, Runs(), Runs()), Standing.FIXED),
        (plain(Verdict.PASS, Verdict.PASS, Runs(), Runs()), None),
        (plain(Verdict.PASS, Verdict.UNSUPPORTED, Runs(), Runs()), None),
        (plain(Verdict.UNSUPPORTED, Verdict.CRASH, Runs(), Runs()), None),
        (plain(Verdict.INVALID, Verdict.PASS, Runs(), Runs()), None),
    ],
)
def test_the_table_of_standings(case: Seen, standing: Standing | None) -> None:
    judgement = judge(case)
    assert (judgement and judgement.standing) == standing


def test_no_base_is_told_apart_from_a_base_not_run() -> None:
    alone = Seen(outcome(Verdict.CRASH), None, Runs(3, 3), Runs(), 3, compared=False)
    judgement = judge(alone)
    assert judgement is not None
    assert judgement.reason == NO_BASE
    assert judgement.base == (0, 0)
