from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.classify.classification import NEW_HERE, NO_BASE, CaseResults, RerunCounts, classify
from bot.store.models import Classification
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict


def outcome(verdict: Verdict, phase: Phase = Phase.COMPILE) -> Outcome:
    return Outcome("c" * 64, "standin", "t", "CPU", verdict, phase, verdict.value)


outcomes = st.builds(outcome, st.sampled_from(Verdict), st.sampled_from(Phase))


@st.composite
def runs(draw: st.DrawFn, repeats: int) -> RerunCounts:
    total = draw(st.integers(0, repeats))
    return RerunCounts(draw(st.integers(0, total)), total)


@st.composite
def seen(draw: st.DrawFn) -> CaseResults:
    repeats = draw(st.integers(1, 5))
    compared = draw(st.booleans())
    base = draw(st.none() | outcomes) if compared else None
    return CaseResults(
        head=draw(outcomes),
        base=base,
        head_runs=draw(runs(repeats)),
        base_runs=draw(runs(repeats)) if base is not None else RerunCounts(),
        repeats=repeats,
        compared=compared,
        reruns=tuple(draw(st.lists(outcomes, max_size=3))),
    )


ALL = RerunCounts(3, 3)


def plain(
    head: Verdict, base: Verdict | None, head_runs: RerunCounts = ALL, base_runs: RerunCounts = ALL
) -> CaseResults:
    at_base = None if base is None else outcome(base)
    return CaseResults(outcome(head), at_base, head_runs, base_runs, 3, compared=True)


@given(seen())
def test_only_what_repeats_on_both_sides_is_a_regression(case: CaseResults) -> None:
    classified = classify(case)
    regressed = classified is not None and classified.classification is Classification.REGRESSION
    assert regressed == (
        case.head.verdict.is_failure
        and case.head_runs == (case.repeats, case.repeats)
        and case.base is not None
        and case.base.verdict is Verdict.PASS
        and case.base_runs == (case.repeats, case.repeats)
    )


@given(seen())
def test_every_accusation_gets_a_standing_and_every_standing_a_reason(case: CaseResults) -> None:
    classified = classify(case)
    if case.head.verdict.is_failure:
        assert classified is not None
    if classified is not None:
        assert classified.reason
        assert classified.verdict in {v.verdict for v in (case.head, case.base) if v is not None}


@given(seen())
def test_what_did_not_repeat_beside_a_passing_base_accuses_nobody(case: CaseResults) -> None:
    classified = classify(case)
    passes = case.base is not None and case.base.verdict is Verdict.PASS
    if case.head.verdict.is_failure and passes and case.head_runs.agreed < case.head_runs.total:
        assert classified is not None
        assert classified.classification in (
            Classification.FLAKY, Classification.FLAKY_PROGRAM, Classification.INFRASTRUCTURE,
            Classification.INCONCLUSIVE,
        )  # fmt: skip


def unsteady(head: Outcome, *reruns: Outcome) -> tuple[Classification, str]:
    classified = classify(
        CaseResults(head, outcome(Verdict.PASS), RerunCounts(0, len(reruns)), ALL, 3, True, reruns)
    )
    assert classified is not None
    return classified.classification, classified.reason


def test_a_flaky_program_is_told_from_a_flaky_compiler() -> None:
    wrong, right = outcome(Verdict.WRONG_RESULT, Phase.RUN), outcome(Verdict.PASS, Phase.RUN)
    varies = outcome(Verdict.NONDETERMINISTIC, Phase.RUN)
    assert unsteady(wrong, wrong, right)[0] is Classification.FLAKY
    assert unsteady(wrong, right, varies) == (
        Classification.FLAKY_PROGRAM,
        "wrong result in run in 0 of 2 fresh runs at head; the library's own result is "
        "nondeterministic, so the compiler is not judged",
    )


def test_a_hang_that_ends_alone_within_the_time_it_had_is_the_machines_doing() -> None:
    hung = replace(outcome(Verdict.HANG, Phase.RUN), durations={"run": 30.0})
    quick, exceeded_limit = (
        replace(outcome(Verdict.PASS, Phase.RUN), durations={"run": took}) for took in (0.5, 45.0)
    )
    classification, reason = unsteady(hung, quick)
    assert classification is Classification.INFRASTRUCTURE
    assert "no end in run after 30 s beside other cases, 0.5 s alone" in reason
    assert unsteady(hung, exceeded_limit) == (
        Classification.INCONCLUSIVE,
        "ends after 45 s in run: above its limit, which `limits` can raise, but no hang",
    )


def test_memory_that_suffices_alone_is_the_machines_doing_unless_more_was_used() -> None:
    spent = replace(outcome(Verdict.OUT_OF_MEMORY), peak_bytes=4 << 30)
    less, more = (replace(outcome(Verdict.PASS), peak_bytes=size << 30) for size in (1, 6))
    assert unsteady(spent, less)[0] is Classification.INFRASTRUCTURE
    assert unsteady(spent, more) == (
        Classification.INCONCLUSIVE,
        "needs 6.0 GiB: above its limit, which `limits` can raise, but no more",
    )


@pytest.mark.parametrize(
    ("message", "classification"),
    [
        ("OSError: [Errno 28] No space left on device: '/tmp/x.so'", Classification.INFRASTRUCTURE),
        ("OSError: [Errno 24] Too many open files", Classification.INFRASTRUCTURE),
        ("no space is left in the tile", Classification.REGRESSION),
    ],
)
def test_a_full_machine_accuses_nobody_however_often_it_is_full(
    message: str, classification: Classification
) -> None:
    crash = replace(outcome(Verdict.CRASH), evidence=Evidence("OSError", message))
    classified = classify(CaseResults(crash, outcome(Verdict.PASS), ALL, ALL, 3, compared=True))
    assert classified is not None
    assert classified.classification is classification


@given(seen())
def test_k_of_n_never_exceeds_n(case: CaseResults) -> None:
    classified = classify(case)
    if classified is not None:
        for failed, total in (classified.head, classified.base):
            assert 0 <= failed <= total <= case.repeats


@given(seen())
def test_lost_support_is_never_called_anything_else(case: CaseResults) -> None:
    classified = classify(case)
    if classified is not None and classified.verdict is Verdict.UNSUPPORTED:
        assert case.base is not None
        assert case.base.verdict is Verdict.PASS
        assert classified.classification is Classification.SUPPORT_LOST


@pytest.mark.parametrize(
    ("case", "classification"),
    [
        (plain(Verdict.CRASH, Verdict.PASS), Classification.REGRESSION),
        (plain(Verdict.OUT_OF_MEMORY, Verdict.PASS), Classification.REGRESSION),
        (plain(Verdict.UNSUPPORTED, Verdict.PASS), Classification.SUPPORT_LOST),
        (plain(Verdict.CRASH, Verdict.HANG, base_runs=RerunCounts()), Classification.ALREADY_BROKEN),
        (plain(Verdict.CRASH, Verdict.UNSUPPORTED, base_runs=RerunCounts()), Classification.INCONCLUSIVE),
        (plain(Verdict.CRASH, None, base_runs=RerunCounts()), Classification.INCONCLUSIVE),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=RerunCounts(1, 2)), Classification.FLAKY),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=RerunCounts(0, 1)), Classification.FLAKY),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=RerunCounts(0, 2)), Classification.ALREADY_BROKEN),
        (plain(Verdict.CRASH, Verdict.PASS, base_runs=RerunCounts(2, 2)), Classification.INCONCLUSIVE),
        (plain(Verdict.CRASH, Verdict.PASS, head_runs=RerunCounts(2, 2)), Classification.INCONCLUSIVE),
        (plain(Verdict.PASS, Verdict.WRONG_RESULT, RerunCounts(), RerunCounts()), Classification.FIXED),
        (plain(Verdict.PASS, Verdict.PASS, RerunCounts(), RerunCounts()), None),
        (plain(Verdict.PASS, Verdict.UNSUPPORTED, RerunCounts(), RerunCounts()), None),
        (plain(Verdict.UNSUPPORTED, Verdict.CRASH, RerunCounts(), RerunCounts()), None),
        (plain(Verdict.INVALID, Verdict.PASS, RerunCounts(), RerunCounts()), None),
    ],
)
def test_the_table_of_standings(case: CaseResults, classification: Classification | None) -> None:
    classified = classify(case)
    assert (classified and classified.classification) == classification


def test_what_base_does_not_support_and_head_gets_wrong_is_a_finding_of_its_own() -> None:
    made = plain(Verdict.WRONG_RESULT, Verdict.UNSUPPORTED, base_runs=RerunCounts())
    classified = classify(made)
    assert classified is not None
    assert (classified.classification, classified.reason) == (Classification.INCONCLUSIVE, NEW_HERE)
    unsteady_here = classify(replace(made, head_runs=RerunCounts(1, 3)))
    assert unsteady_here is not None
    assert unsteady_here.classification is Classification.FLAKY


def test_no_base_is_told_apart_from_a_base_not_run() -> None:
    alone = CaseResults(outcome(Verdict.CRASH), None, RerunCounts(3, 3), RerunCounts(), 3, compared=False)
    classified = classify(alone)
    assert classified is not None
    assert classified.reason == NO_BASE
    assert classified.base == (0, 0)
