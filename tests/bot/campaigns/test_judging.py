from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.judging import NO_BASE, Runs, Seen, judge
from bot.store.models import Standing
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict


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
        again=tuple(draw(st.lists(outcomes, max_size=3))),
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
def test_what_did_not_repeat_beside_a_passing_base_accuses_nobody(case: Seen) -> None:
    judgement = judge(case)
    passes = case.base is not None and case.base.verdict is Verdict.PASS
    if case.head.verdict.accuses and passes and case.head_runs.agreed < case.head_runs.total:
        assert judgement is not None
        assert judgement.standing in (
            Standing.FLAKY, Standing.FLAKY_PROGRAM, Standing.INFRASTRUCTURE, Standing.UNJUDGED,
        )  # fmt: skip


def unsteady(head: Outcome, *again: Outcome) -> tuple[Standing, str]:
    judgement = judge(Seen(head, outcome(Verdict.PASS), Runs(0, len(again)), ALL, 3, True, again))
    assert judgement is not None
    return judgement.standing, judgement.reason


def test_a_flaky_program_is_told_from_a_flaky_compiler() -> None:
    wrong, right = outcome(Verdict.WRONG_RESULT, Phase.RUN), outcome(Verdict.PASS, Phase.RUN)
    varies = outcome(Verdict.NONDETERMINISTIC, Phase.RUN)
    assert unsteady(wrong, wrong, right)[0] is Standing.FLAKY
    assert unsteady(wrong, right, varies) == (
        Standing.FLAKY_PROGRAM,
        "wrong result in run in 0 of 2 fresh runs at head; the library itself answers now so, now so, "
        "so that nothing is said of the compiler",
    )


def test_a_hang_that_ends_alone_within_the_time_it_had_is_the_machines_doing() -> None:
    hung = replace(outcome(Verdict.HANG, Phase.RUN), durations={"run": 30.0})
    quick, slow = (replace(outcome(Verdict.PASS, Phase.RUN), durations={"run": took}) for took in (0.5, 45.0))
    standing, reason = unsteady(hung, quick)
    assert standing is Standing.INFRASTRUCTURE
    assert "no end in run after 30 s beside other cases, 0.5 s alone" in reason
    assert unsteady(hung, slow) == (
        Standing.UNJUDGED,
        "ends after 45 s in run: past its limit, which `limits` can raise, but no hang",
    )


def test_memory_that_suffices_alone_is_the_machines_doing_unless_more_was_used() -> None:
    spent = replace(outcome(Verdict.OUT_OF_MEMORY), peak_bytes=4 << 30)
    less, more = (replace(outcome(Verdict.PASS), peak_bytes=size << 30) for size in (1, 6))
    assert unsteady(spent, less)[0] is Standing.INFRASTRUCTURE
    assert unsteady(spent, more) == (
        Standing.UNJUDGED,
        "needs 6.0 GiB: past its limit, which `limits` can raise, but no more",
    )


@pytest.mark.parametrize(
    ("message", "standing"),
    [
        ("OSError: [Errno 28] No space left on device: '/tmp/x.so'", Standing.INFRASTRUCTURE),
        ("OSError: [Errno 24] Too many open files", Standing.INFRASTRUCTURE),
        ("no space is left in the tile", Standing.REGRESSION),
    ],
)
def test_a_full_machine_accuses_nobody_however_often_it_is_full(message: str, standing: Standing) -> None:
    crash = replace(outcome(Verdict.CRASH), evidence=Evidence("OSError", message))
    judgement = judge(Seen(crash, outcome(Verdict.PASS), ALL, ALL, 3, compared=True))
    assert judgement is not None
    assert judgement.standing is standing


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
