"""The referee's rules, each on witnesses made by hand."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.cases import OnnxModel, Provenance, Sequence, Tensor, TestCase, Tolerance
from fuzzing.oracles.decision import Decision, decide_outcome
from fuzzing.oracles.float64_check import (
    ROUNDINGS,
    ReferenceRuns,
    decide_outputs,
    decide_trap,
    error_factor,
    needs_recheck,
)
from fuzzing.oracles.output_comparison import Outputs
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
    perturbed: Any = None,
    dtype: str = "float32",
    wide: str = "float64",
    **more: Any,
) -> Decision:
    """The ruling on `got`; `perturbed` is what each moved run gives, by default as `exact`."""
    given = of(exact if perturbed is None else perturbed, wide)
    reference_runs = ReferenceRuns(
        runs=(of(library, dtype), of(library, dtype)),
        float64=of(exact, wide),
        perturbed_equally=more.pop("perturbed_equally", (given,)),
        perturbed_independently=(given,),
        **more,
    )
    return decide_outputs(case(of(library, dtype)), of(got, dtype), reference_runs)


def test_what_is_worse_than_the_library_is_wrong_and_says_by_how_much() -> None:
    decision = heard([1000, 2], [1000.0001, 2], [1000.5, 2])
    assert decision.verdict is WRONG
    [found] = decision.mismatches
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
    assert error_factor("float32", size) == times
    assert error_factor("float16", size) == max(times, 3)


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
    assert heard([100, 1], [100, 1], [100, 1.01], perturbed=[100, 1.001]).verdict is PASS
    assert heard([100, 1], [100, 1], [100, 1.05], perturbed=[100, 1.001]).verdict is WRONG
    assert heard([100, 1], [100, 1], [101, 1], perturbed=[100, 1.001]).verdict is WRONG, (
        "the other one is not"
    )


def test_elements_may_move_as_far_as_moved_constants_move_them() -> None:
    """Where all float inputs are initializers, moved inputs show nothing."""

    def of_constants(got: float, moved: float) -> Verdict:
        runs = (of([100, 1]),) * 2
        reference_runs = ReferenceRuns(
            runs=runs, float64=of([100, 1], "float64"), moved_constants=(of([100, moved], "float64"),)
        )
        return decide_outputs(case(runs[0]), of([100, got]), reference_runs).verdict

    assert of_constants(1.01, moved=1.001) is PASS
    assert of_constants(1.05, moved=1.001) is WRONG
    assert of_constants(1.01, moved=1.0) is WRONG


def test_where_terms_cancel_errors_count_beside_the_largest_element() -> None:
    """As in a Fourier transform, where 0 is due; without any cancelling, 0 is 0."""
    largest, tiny = 1e4, 30 * U * 1e4
    assert (
        heard([largest, 1, 0], [largest, 1, 0], [largest, 1, tiny], perturbed=[largest, 1.001, 0]).verdict
        is PASS
    )
    assert heard([largest, 1, 0], [largest, 1, 0], [largest, 1, tiny]).verdict is WRONG


def test_half_precision_does_not_pass_for_single() -> None:
    want = np.linspace(1, 900, 2000, dtype=np.float32)
    got = want.astype(np.float16).astype(np.float32)
    decision = heard(want, want.astype(np.float64), got, perturbed=want.astype(np.float64) * (1 + U))
    assert decision.verdict is WRONG


@pytest.mark.parametrize("got", [NAN, INF, -INF])
def test_a_number_is_due_where_all_witnesses_have_one(got: float) -> None:
    decision = heard([1, 2], [1, 2], [1, got])
    assert decision.verdict is WRONG
    assert decision.mismatches[0].compiled_error is None


@pytest.mark.parametrize(
    ("library", "exact", "perturbed"),
    [(INF, 1e40, None), (NAN, 5.0, None), (3e38, INF, None), (7.0, 7.0, NAN)],
)
def test_where_the_witnesses_part_over_nan_and_infinity_nothing_is_compared(
    library: float, exact: float, perturbed: float | None
) -> None:
    decision = heard(
        [1, library], [1, exact], [1, 42], perturbed=None if perturbed is None else [1, perturbed]
    )
    assert decision.verdict is PASS
    assert "1 not compared: rounding decides them" in decision.summary


def test_infinity_is_due_where_all_witnesses_have_it() -> None:
    assert heard([INF, 1], [INF, 1], [-INF, 1]).verdict is WRONG
    assert heard([NAN, 1], [NAN, 1], [0, 1]).verdict is WRONG


def test_integers_are_compared_where_all_witnesses_agree() -> None:
    """A tie: moved apart, another element is the largest."""

    def index(library: int, got: int, perturbed_independently: int) -> Decision:
        runs = (of([library, 5], "int64"),) * 2
        reference_runs = ReferenceRuns(
            runs=runs,
            float64=runs[0],
            perturbed_equally=runs,
            perturbed_independently=(of([perturbed_independently, 5], "int64"),),
        )
        return decide_outputs(case(runs[0]), of([got, 5], "int64"), reference_runs)

    tie = index(0, 1, perturbed_independently=1)
    assert tie.verdict is PASS
    assert [(one.got, one.want) for one in tie.excused] == [("1", "0")], "told where base equals the library"
    assert not index(0, 0, perturbed_independently=1).excused
    assert index(0, 2, perturbed_independently=0).verdict is WRONG


def test_bools_do_not_hear_that_equal_numbers_were_moved_apart() -> None:
    """Equal(x, x) is true, however ties break elsewhere; a threshold is another matter."""
    true, false = of([True], "bool"), of([False], "bool")
    reference_runs = ReferenceRuns(
        runs=(true, true),
        float64=true,
        perturbed_equally=(true, true),
        perturbed_independently=(false, false),
    )
    assert decide_outputs(case(true), false, reference_runs).verdict is WRONG
    assert (
        decide_outputs(case(true), false, replace(reference_runs, perturbed_equally=(true, false))).verdict
        is PASS
    )


def test_what_the_standard_leaves_open_is_not_compared() -> None:
    runs = (of([7, 8], "int32"),) * 2
    reference_runs = ReferenceRuns(runs=runs, float64=of([0, 8], "int32"), refilled=of([1, 8], "int32"))
    decision = decide_outputs(case(runs[0]), of([9, 8], "int32"), reference_runs)
    assert (decision.verdict, "1 not compared: the standard leaves them open" in decision.summary) == (
        PASS,
        True,
    )
    assert [(one.got, one.want) for one in decision.excused] == [("9", "7")]
    assert decide_outputs(case(runs[0]), of([7, 9], "int32"), reference_runs).verdict is WRONG


RAISED = Evidence(error="Fail", message="element_wise_ops.cc:692 Compute Integer division by zero")
BY_TVM = Evidence(error="ValueError", message="ONNX Div with integer inputs encountered divisor value 0.")
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
        (replace(DIED, evidence=BY_TVM, phase=Phase.CONVERT), "default", True),
        (replace(DIED, evidence=Evidence(error="Fail", message="no more memory")), "default", False),
    ],
)
def test_a_division_that_is_refused_is_appealed(outcome: Outcome, profile: str, want: bool) -> None:
    assert needs_recheck(outcome, profile) is want


def test_a_program_that_asks_for_such_a_division_accuses_nobody() -> None:
    asks = ReferenceRuns(float64=of([0, 8], "int32"), refilled=of([1, 8], "int32"))
    decision = decide_trap(asks)
    assert decision is not None
    assert decision.verdict is Verdict.UNSUPPORTED
    assert decide_trap(replace(asks, refilled=asks.float64)) is None, "the division is the compiler's own"
    assert decide_trap(replace(asks, refilled=None)) is None, "nobody knows"


def test_a_library_at_odds_with_itself_is_no_judge() -> None:
    reference_runs = ReferenceRuns(runs=(of([1.0]), of([2.0])), float64=of([1.0], "float64"))
    decision = decide_outputs(case(of([1.0])), of([5.0]), reference_runs)
    assert decision.verdict is Verdict.NONDETERMINISTIC
    assert "the library itself gives two results" in decision.summary


@pytest.mark.parametrize(
    ("reference_runs", "why"),
    [
        (ReferenceRuns(runs=(of([1024, 0]),), problem="no such operator"), "no such operator"),
        (ReferenceRuns(float64=of([1024, 0], "float64")), "no float64 run"),
        (
            ReferenceRuns(runs=(of([1024, 9]),), float64=of([1024, 9], "float64")),
            "the library does not give what its test expects",
        ),
    ],
)
def test_without_a_float64_run_noise_is_allowed_and_no_more(reference_runs: ReferenceRuns, why: str) -> None:
    decision = decide_outputs(case(of([1024, 0])), of([1024, 4e-4]), reference_runs)
    assert (decision.verdict, why in decision.summary) == (PASS, True)
    assert decide_outputs(case(of([1024, 0])), of([1024, 6e-4]), reference_runs).verdict is WRONG


def test_where_a_library_contradicts_its_own_test_nobody_is_blamed_for_either() -> None:
    """As in ONNX's test of Resize with align_corners: the text, its evaluator and the runtimes agree."""
    shipped = case(of([3.142857]))
    reference_runs = ReferenceRuns(runs=(of([4.0]),) * 2, float64=of([4.0], "float64"))
    for given in (3.142857, 4.0):
        decision = decide_outputs(shipped, of([given]), reference_runs)
        assert (decision.verdict, "does not give what its test expects" in decision.summary) == (PASS, True)
    assert decide_outputs(shipped, of([3.5]), reference_runs).verdict is WRONG


def test_the_tolerance_of_the_source_is_heeded() -> None:
    """What a library ships may be rounded to four digits; its own run of the program says more."""
    shipped = case(of([0.9727]), tolerance=Tolerance(1e-3, 1e-7))
    reference_runs = ReferenceRuns(runs=(of([0.97278404]),) * 2, float64=of([0.97278404], "float64"))
    assert decide_outputs(shipped, of([0.97278]), reference_runs).verdict is PASS
    assert decide_outputs(shipped, of([0.98]), reference_runs).verdict is WRONG


def test_shapes_are_compared_where_all_witnesses_agree() -> None:
    runs = (of([1, 2], "int64"),) * 2
    other = of([1], "int64")
    agreed = ReferenceRuns(runs=runs, float64=runs[0], perturbed_equally=runs, perturbed_independently=runs)
    assert decide_outputs(case(runs[0]), other, agreed).verdict is WRONG
    assert (
        decide_outputs(case(runs[0]), other, replace(agreed, perturbed_independently=(other,))).verdict
        is PASS
    )


def test_a_moved_size_says_nothing_about_numbers() -> None:
    """The scales of a Resize are floats too: moved, they change the shape, and those runs are left out."""
    smaller = (of([1.0], "float64"),)
    assert heard([1, 2], [1, 2], [1, -2], perturbed_equally=smaller).verdict is WRONG


def test_items_of_sequences_are_judged_one_by_one() -> None:
    def seq(*items: float, dtype: str = "float32") -> Outputs:
        return (("s", Sequence(tuple(Tensor.of(np.array([item], dtype)) for item in items))),)

    exact = seq(1000, 2, dtype="float64")
    perturbed = seq(1000.5, 2, dtype="float64")
    reference_runs = ReferenceRuns(
        runs=(seq(1000, 2),) * 2,
        float64=exact,
        perturbed_equally=(perturbed,),
        perturbed_independently=(exact,),
    )
    assert decide_outputs(case(seq(1000, 2)), seq(1001, 2), reference_runs).verdict is PASS
    decision = decide_outputs(case(seq(1000, 2)), seq(1001, 3), reference_runs)
    assert [found.output for found in decision.mismatches] == ["s[1]"]


def test_coarse_floats_are_compared_where_all_witnesses_are_near() -> None:
    def e5m2(code: int) -> Outputs:
        return (("y", Tensor("float8_e5m2", (1,), bytes([code]))),)

    reference_runs = ReferenceRuns(
        runs=(e5m2(40),) * 2,
        float64=e5m2(40),
        perturbed_equally=(e5m2(41),),
        perturbed_independently=(e5m2(39),),
    )
    assert decide_outputs(case(e5m2(40)), e5m2(43), reference_runs).verdict is WRONG
    assert (
        decide_outputs(
            case(e5m2(40)), e5m2(43), replace(reference_runs, perturbed_equally=(e5m2(44),))
        ).verdict
        is PASS
    )


def test_complex_numbers_are_measured_by_their_modulus() -> None:
    def decision(got: complex) -> Verdict:
        exact = [1000 + 1000j]
        return heard(exact, exact, [got], dtype="complex64", wide="complex128").verdict

    assert decision(1000.001 + 1000j) is PASS
    assert decision(1000 + 1000.1j) is WRONG
    assert decision(complex(1000, NAN)) is WRONG


def test_missing_outputs_and_types_are_no_matter_of_rounding() -> None:
    def outcome(*kinds: str, verdict: Verdict = WRONG, judged: str = "") -> Outcome:
        mismatches = tuple(Mismatch("y", kind, "", judged=judged) for kind in kinds)
        evidence = Evidence(mismatches=mismatches)
        return Outcome("c", "b", "t", "CPU", verdict, Phase.RUN, "", evidence=evidence)

    assert needs_recheck(outcome("value", "shape"), "default")
    assert not needs_recheck(outcome("value", "type"), "default")
    assert needs_recheck(outcome("value", "type", judged="right"), "default"), "which side has the type?"
    assert not needs_recheck(outcome("missing"), "default")
    assert not needs_recheck(outcome("missing", judged="right"), "default")
    assert not needs_recheck(outcome("value"), "isra")
    assert not needs_recheck(outcome("value", verdict=Verdict.CRASH), "default")


def test_judging_knows_no_referee() -> None:
    """`decide_outcome` decides by what it is given; who wants the referee's word appeals."""
    from fuzzing.execution import Execution
    from tests.fuzzing.oracles.test_decision import Backend

    execution = Execution("returned", Phase.RUN, outputs=of([1000.5]))
    assert decide_outcome(case(of([1000.0])), execution, Backend(), "t", "CPU").verdict is WRONG


def test_a_long_sum_may_be_added_one_by_one() -> None:
    """tinygrad adds 6,480 weights of a loss so; onnxruntime and numpy add parts."""
    weights = np.tile(np.array([0.06691303, 0.52686626, 0.753099, 0.39538297], np.float32), 1620)
    exact = float(weights.astype(np.float64).sum())
    library, one_by_one = float(weights.sum()), float(np.cumsum(weights)[-1])
    assert abs(library - exact) < 32 * 2**-24 * exact < abs(one_by_one - exact)
    runs = ReferenceRuns(
        runs=(of([library]),) * 2,
        float64=of([exact], "float64"),
        perturbed_equally=(of([exact * (1 + 2**-24)], "float64"),),
        perturbed_independently=(of([exact], "float64"),),
    )
    summed = replace(case(of([library])), inputs=(("w", Tensor.of(weights)),))
    assert decide_outputs(summed, of([one_by_one]), runs).verdict is PASS
    assert decide_outputs(case(of([library])), of([one_by_one]), runs).verdict is WRONG
    assert decide_outputs(summed, of([exact * 0.999]), runs).verdict is WRONG


def test_what_is_computed_in_float32_is_judged_by_float32() -> None:
    """float64 outputs of a backend that computes in float32, as OpenVINO's plugins do."""
    third = [1 / 3, 1e300]
    runs = ReferenceRuns(
        runs=(of(third, "float64"),) * 2,
        float64=of(third, "float64"),
        perturbed_equally=(of(third, "float64"),),
        perturbed_independently=(of(third, "float64"),),
    )
    narrow = {"float64": "float32"}
    with np.errstate(over="ignore"):
        rounded = np.array(third).astype(np.float32).astype(np.float64)  # 1e300 becomes infinity
    assert decide_outputs(case(of(third, "float64")), of(rounded, "float64"), runs, narrow).verdict is PASS
    assert decide_outputs(case(of(third, "float64")), of(rounded, "float64"), runs).verdict is WRONG
    off = [0.3334, 1e300]
    assert decide_outputs(case(of(third, "float64")), of(off, "float64"), runs, narrow).verdict is WRONG


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16"])
def test_openvino_says_what_it_computes_in(precision: str) -> None:
    openvino = backends.get("openvino")
    narrow = openvino.computed_in("CPU", openvino.resolve_options({"precision": precision}))
    assert narrow["float64"] == {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[precision]
    assert backends.get("onnxruntime").computed_in("CPU", {}) == {}


@pytest.mark.parametrize(
    ("library", "got", "verdict"),
    [
        (2.9e-6, -3.1e-6, PASS),  # both round to float32 inside, within the tolerance of float64 or not
        (1e-7, -4e-6, PASS),  # the library's roundings happen to be small
        (2.9e-6, -3e-4, WRONG),
        (0.0, -4e-6, WRONG),
        (1e-13, -4e-6, WRONG),  # a library with errors of a sum in float64
    ],
)
def test_a_program_of_float64_that_computes_in_float32_inside(
    library: float, got: float, verdict: Verdict
) -> None:
    exact = -33.08675865
    assert heard([exact + library], [exact], [exact + got], dtype="float64").verdict is verdict
