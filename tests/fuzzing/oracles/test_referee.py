"""The referee's rules, each on witnesses made by hand."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing.cases import OnnxModel, Provenance, Sequence, Tensor, TestCase, Tolerance
from fuzzing.oracles.compare import Outputs
from fuzzing.oracles.judging import Ruling, judge
from fuzzing.oracles.referee import ROUNDINGS, Witnesses, appealable, excused, factor, review
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

U = 2.0**-24  # one rounding of float32
NAN, INF = float("nan"), float("inf")
PASS, WRONG = Verdict.PASS, Verdict.WRONG_RESULT


def of(items: Any, dtype: str = "float32") -> Outputs:
    return (("y", Tensor.of(np.array(items, dtype))),)


def case(expected: Outputs, **given: Any) -> TestCase:
    return TestCase(OnnxModel(b"m"), (), Provenance("", "", "", "", ""), expected=expected, **given)


def heard(
    library: Any,
    exact: Any,
    got: Any,
    *,
    moved: Any = None,
    dtype: str = "float32",
    wide: str = "float64",
    **more: Any,
) -> Ruling:
    """The ruling on `got`; `moved` is what each moved run gives, by default as `exact`."""
    given = of(exact if moved is None else moved, wide)
    witnesses = Witnesses(
        runs=(of(library, dtype), of(library, dtype)),
        float64=of(exact, wide),
        alike=more.pop("alike", (given,)),
        apart=(given,),
        **more,
    )
    return review(case(of(library, dtype)), of(got, dtype), witnesses)


def test_what_is_worse_than_the_library_is_wrong_and_says_by_how_much() -> None:
    ruling = heard([1000, 2], [1000.0001, 2], [1000.5, 2])
    assert ruling.verdict is WRONG
    [found] = ruling.mismatches
    assert found.compiled_error == pytest.approx(0.4999)
    assert found.library_error == pytest.approx(1e-4, rel=0.01)
    assert found.worst == (0,)
    assert "0.5 off a float64 run, the library 0.0001" in found.detail


def test_who_is_as_far_off_as_the_library_on_the_other_side_passes() -> None:
    """100 roundings off each: twice the tolerance apart, and nobody to blame."""
    off = 1000 * 100 * U
    assert heard([1000 + off], [1000], [1000 - off]).verdict is PASS
    assert heard([1000], [1000], [1000 - 2 * off]).verdict is WRONG


@pytest.mark.parametrize(
    ("size", "times"), [(1, 10), (10, 10), (11, 8), (500, 8), (501, 3), (999, 3), (1000, 2)]
)
def test_factors_are_those_of_torch(size: int, times: float) -> None:
    assert factor("float32", size) == times
    assert factor("float16", size) == max(times, 3)


@pytest.mark.compiler_torch_eager
def test_factors_are_still_those_of_the_torch_installed() -> None:
    """The constants are read off its source: should they change there, they are to be looked at here."""
    spec = importlib.util.find_spec("torch")  # found, not imported
    assert spec is not None
    assert spec.origin is not None
    source = " ".join((Path(spec.origin).parent / "_dynamo" / "utils.py").read_text().split())
    for line in (
        "fp64_ref.numel() <= 10 ): multiplier = 10.0",
        "fp64_ref.numel() <= 500 ): multiplier = 8.0",
        "fp64_ref.numel() < 1000",
        "3.0 if res.dtype in (torch.float16, torch.bfloat16) else 2.0",
    ):
        assert line in source


def test_the_librarys_error_counts_times_the_factor_and_no_more() -> None:
    library = 1000 * 1000 * U
    allowed = 1000 * U * (ROUNDINGS + 10 * 1000)
    assert heard([1000 + library], [1000], [1000 + 0.99 * allowed]).verdict is PASS
    assert heard([1000 + library], [1000], [1000 + 1.01 * allowed]).verdict is WRONG


def test_the_librarys_error_within_its_own_tolerance_licenses_nothing() -> None:
    """sin(pi) is 1e-16, and -8.7e-8 in float32: a billion roundings, which say nothing about the rest."""
    assert heard([-8.7e-8, 1000], [1.2e-16, 1000], [0, 1000.1]).verdict is WRONG


def test_ill_conditioned_elements_may_move_as_far_as_rounding_moves_them() -> None:
    assert heard([100, 1], [100, 1], [100, 1.01], moved=[100, 1.001]).verdict is PASS
    assert heard([100, 1], [100, 1], [100, 1.05], moved=[100, 1.001]).verdict is WRONG
    assert heard([100, 1], [100, 1], [101, 1], moved=[100, 1.001]).verdict is WRONG, "the other one is not"


def test_where_terms_cancel_errors_count_beside_the_largest_element() -> None:
    """As in a Fourier transform, where 0 is due; without any cancelling, 0 is 0."""
    largest, tiny = 1e4, 30 * U * 1e4
    assert (
        heard([largest, 1, 0], [largest, 1, 0], [largest, 1, tiny], moved=[largest, 1.001, 0]).verdict is PASS
    )
    assert heard([largest, 1, 0], [largest, 1, 0], [largest, 1, tiny]).verdict is WRONG


def test_half_precision_does_not_pass_for_single() -> None:
    want = np.linspace(1, 900, 2000, dtype=np.float32)
    got = want.astype(np.float16).astype(np.float32)
    ruling = heard(want, want.astype(np.float64), got, moved=want.astype(np.float64) * (1 + U))
    assert ruling.verdict is WRONG


@pytest.mark.parametrize("got", [NAN, INF, -INF])
def test_a_number_is_due_where_all_witnesses_have_one(got: float) -> None:
    ruling = heard([1, 2], [1, 2], [1, got])
    assert ruling.verdict is WRONG
    assert ruling.mismatches[0].compiled_error is None


@pytest.mark.parametrize(
    ("library", "exact", "moved"), [(INF, 1e40, None), (NAN, 5.0, None), (3e38, INF, None), (7.0, 7.0, NAN)]
)
def test_where_the_witnesses_part_over_nan_and_infinity_nothing_is_compared(
    library: float, exact: float, moved: float | None
) -> None:
    ruling = heard([1, library], [1, exact], [1, 42], moved=None if moved is None else [1, moved])
    assert ruling.verdict is PASS
    assert "1 not compared: rounding decides them" in ruling.summary


def test_infinity_is_due_where_all_witnesses_have_it() -> None:
    assert heard([INF, 1], [INF, 1], [-INF, 1]).verdict is WRONG
    assert heard([NAN, 1], [NAN, 1], [0, 1]).verdict is WRONG


def test_integers_are_compared_where_all_witnesses_agree() -> None:
    """A tie: moved apart, another element is the largest."""

    def index(library: int, got: int, apart: int) -> Ruling:
        runs = (of([library, 5], "int64"),) * 2
        witnesses = Witnesses(runs=runs, float64=runs[0], alike=runs, apart=(of([apart, 5], "int64"),))
        return review(case(runs[0]), of([got, 5], "int64"), witnesses)

    assert index(0, 1, apart=1).verdict is PASS
    assert index(0, 2, apart=0).verdict is WRONG


def test_bools_do_not_hear_that_equal_numbers_were_moved_apart() -> None:
    """Equal(x, x) is true, however ties break elsewhere; a threshold is another matter."""
    true, false = of([True], "bool"), of([False], "bool")
    witnesses = Witnesses(runs=(true, true), float64=true, alike=(true, true), apart=(false, false))
    assert review(case(true), false, witnesses).verdict is WRONG
    assert review(case(true), false, replace(witnesses, alike=(true, false))).verdict is PASS


def test_what_the_standard_leaves_open_is_not_compared() -> None:
    runs = (of([7, 8], "int32"),) * 2
    witnesses = Witnesses(runs=runs, float64=of([0, 8], "int32"), refilled=of([1, 8], "int32"))
    ruling = review(case(runs[0]), of([9, 8], "int32"), witnesses)
    assert (ruling.verdict, "1 not compared: the standard leaves them open" in ruling.summary) == (PASS, True)
    assert review(case(runs[0]), of([7, 9], "int32"), witnesses).verdict is WRONG


RAISED = Evidence(error="Fail", message="element_wise_ops.cc:692 Compute Integer division by zero")
DIED = Outcome(
    case="c",
    backend="b",
    toolchain="t",
    device="CPU",
    verdict=Verdict.CRASH,
    phase=Phase.RUN,
    summary="",
    evidence=Evidence(signal="SIGFPE"),
)


@pytest.mark.parametrize(
    ("outcome", "profile", "want"),
    [
        (DIED, "default", True),
        (DIED, "opera", False),
        (replace(DIED, phase=Phase.COMPILE), "default", False),
        (replace(DIED, evidence=Evidence(signal="SIGSEGV")), "default", False),
        (replace(DIED, evidence=RAISED), "default", True),
        (replace(DIED, evidence=RAISED, phase=Phase.COMPILE), "default", True),
        (replace(DIED, evidence=Evidence(error="Fail", message="no more memory")), "default", False),
    ],
)
def test_a_division_that_is_refused_is_appealed(outcome: Outcome, profile: str, want: bool) -> None:
    assert appealable(outcome, profile) is want


def test_a_program_that_asks_for_such_a_division_accuses_nobody() -> None:
    asks = Witnesses(float64=of([0, 8], "int32"), refilled=of([1, 8], "int32"))
    ruling = excused(asks)
    assert ruling is not None
    assert ruling.verdict is Verdict.UNSUPPORTED
    assert excused(replace(asks, refilled=asks.float64)) is None, "the division is the compiler's own"
    assert excused(replace(asks, refilled=None)) is None, "nobody knows"


def test_a_library_at_odds_with_itself_is_no_judge() -> None:
    witnesses = Witnesses(runs=(of([1.0]), of([2.0])), float64=of([1.0], "float64"))
    ruling = review(case(of([1.0])), of([5.0]), witnesses)
    assert ruling.verdict is Verdict.NONDETERMINISTIC
    assert "the library itself gives two results" in ruling.summary


@pytest.mark.parametrize(
    ("witnesses", "why"),
    [
        (Witnesses(runs=(of([1024, 0]),), trouble="no such operator"), "no such operator"),
        (Witnesses(float64=of([1024, 0], "float64")), "no float64 run"),
        (
            Witnesses(runs=(of([1024, 9]),), float64=of([1024, 9], "float64")),
            "the library does not give what its test expects",
        ),
    ],
)
def test_without_a_float64_run_noise_is_allowed_and_no_more(witnesses: Witnesses, why: str) -> None:
    ruling = review(case(of([1024, 0])), of([1024, 4e-4]), witnesses)
    assert (ruling.verdict, why in ruling.summary) == (PASS, True)
    assert review(case(of([1024, 0])), of([1024, 6e-4]), witnesses).verdict is WRONG


def test_where_a_library_contradicts_its_own_test_nobody_is_blamed_for_either() -> None:
    """As in ONNX's test of Resize with align_corners: the text, its evaluator and the runtimes agree."""
    shipped = case(of([3.142857]))
    witnesses = Witnesses(runs=(of([4.0]),) * 2, float64=of([4.0], "float64"))
    for given in (3.142857, 4.0):
        ruling = review(shipped, of([given]), witnesses)
        assert (ruling.verdict, "does not give what its test expects" in ruling.summary) == (PASS, True)
    assert review(shipped, of([3.5]), witnesses).verdict is WRONG


def test_the_tolerance_of_the_source_is_heeded() -> None:
    """What a library ships may be rounded to four digits; its own run of the program says more."""
    shipped = case(of([0.9727]), tolerance=Tolerance(1e-3, 1e-7))
    witnesses = Witnesses(runs=(of([0.97278404]),) * 2, float64=of([0.97278404], "float64"))
    assert review(shipped, of([0.97278]), witnesses).verdict is PASS
    assert review(shipped, of([0.98]), witnesses).verdict is WRONG


def test_shapes_are_compared_where_all_witnesses_agree() -> None:
    runs = (of([1, 2], "int64"),) * 2
    other = of([1], "int64")
    agreed = Witnesses(runs=runs, float64=runs[0], alike=runs, apart=runs)
    assert review(case(runs[0]), other, agreed).verdict is WRONG
    assert review(case(runs[0]), other, replace(agreed, apart=(other,))).verdict is PASS


def test_a_moved_size_says_nothing_about_numbers() -> None:
    """The scales of a Resize are floats too: moved, they change the shape, and those runs are left out."""
    smaller = (of([1.0], "float64"),)
    assert heard([1, 2], [1, 2], [1, -2], alike=smaller).verdict is WRONG


def test_items_of_sequences_are_judged_one_by_one() -> None:
    def seq(*items: float, dtype: str = "float32") -> Outputs:
        return (("s", Sequence(tuple(Tensor.of(np.array([item], dtype)) for item in items))),)

    exact = seq(1000, 2, dtype="float64")
    moved = seq(1000.5, 2, dtype="float64")
    witnesses = Witnesses(runs=(seq(1000, 2),) * 2, float64=exact, alike=(moved,), apart=(exact,))
    assert review(case(seq(1000, 2)), seq(1001, 2), witnesses).verdict is PASS
    ruling = review(case(seq(1000, 2)), seq(1001, 3), witnesses)
    assert [found.output for found in ruling.mismatches] == ["s[1]"]


def test_coarse_floats_are_compared_where_all_witnesses_are_near() -> None:
    def e5m2(code: int) -> Outputs:
        return (("y", Tensor("float8_e5m2", (1,), bytes([code]))),)

    witnesses = Witnesses(runs=(e5m2(40),) * 2, float64=e5m2(40), alike=(e5m2(41),), apart=(e5m2(39),))
    assert review(case(e5m2(40)), e5m2(43), witnesses).verdict is WRONG
    assert review(case(e5m2(40)), e5m2(43), replace(witnesses, alike=(e5m2(44),))).verdict is PASS


def test_complex_numbers_are_measured_by_their_modulus() -> None:
    def ruling(got: complex) -> Verdict:
        exact = [1000 + 1000j]
        return heard(exact, exact, [got], dtype="complex64", wide="complex128").verdict

    assert ruling(1000.001 + 1000j) is PASS
    assert ruling(1000 + 1000.1j) is WRONG
    assert ruling(complex(1000, NAN)) is WRONG


def test_missing_outputs_and_types_are_no_matter_of_rounding() -> None:
    def outcome(*kinds: str, verdict: Verdict = WRONG) -> Outcome:
        mismatches = tuple(Mismatch("y", kind, "") for kind in kinds)
        evidence = Evidence(mismatches=mismatches)
        return Outcome("c", "b", "t", "CPU", verdict, Phase.RUN, "", evidence=evidence)

    assert appealable(outcome("value", "shape"), "default")
    assert not appealable(outcome("value", "type"), "default")
    assert not appealable(outcome("missing"), "default")
    assert not appealable(outcome("value"), "isra")
    assert not appealable(outcome("value", verdict=Verdict.CRASH), "default")


def test_judging_knows_no_referee() -> None:
    """`judge` decides by what it is given; who wants the referee's word appeals."""
    from fuzzing.execute.execution import Execution
    from tests.fuzzing.oracles.test_judging import Backend

    execution = Execution("returned", Phase.RUN, outputs=of([1000.5]))
    assert judge(case(of([1000.0])), execution, Backend(), "t", "CPU").verdict is WRONG
