from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuzzing.cases import Tensor, Tolerance
from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.oracles.element_types import ROUNDING, decode, is_float, ulp_ranks
from fuzzing.oracles.mismatches import OutputPair, passes_at, ulp_histogram
from fuzzing.oracles.output_comparison import compare
from fuzzing.oracles.tolerance_profiles import COARSE_DTYPES
from tests.fuzzing.cases.strategies import numeric_tensors

REALS = ("float16", "bfloat16", "float32", "float64")
NAN, INF = float("nan"), float("inf")


def tensor(items: Any, dtype: str) -> Tensor:
    if dtype in RAW_DTYPES:
        return Tensor.of(np.array(items, np.float32).astype(getattr(ml_dtypes, dtype)), dtype)
    return Tensor.of(np.array(items, dtype))


def pair(got: Any, want: Any, dtype: str = "float32") -> OutputPair:
    return OutputPair("y", tensor(got, dtype), tensor(want, dtype))


@pytest.mark.parametrize("dtype", REALS)
def test_neighbors_are_one_step_apart(dtype: str) -> None:
    """All float16 and bfloat16, and as many of the wider types, in order from one infinity to the other."""
    width = np.dtype(CARRIERS[dtype]).itemsize * 8
    codes = np.arange(1 << 16, dtype=np.uint64) << np.uint64(width - 16)
    raw = codes.astype(f"u{width // 8}").view(CARRIERS[dtype])
    with np.errstate(invalid="ignore"):  # signalling NaN
        numbers = decode(dtype, raw).astype(np.float64)
    real = np.isfinite(numbers)
    order = np.argsort(numbers[real], kind="stable")
    steps = np.diff(ulp_ranks(dtype, raw)[real][order])
    assert set(steps.tolist()) <= {0, 1 << (width - 16)}
    assert (steps == 0).sum() == 1, "both zeros have one place"


@pytest.mark.parametrize("dtype", [*REALS, *sorted(COARSE_DTYPES - {"float8_e8m0fnu"})])
def test_the_histogram_counts_each_element_in_its_bin(dtype: str) -> None:
    """0, 1, 2-3, 4-7 steps off, told by their codes."""
    width = np.dtype(CARRIERS[dtype]).itemsize
    base = 2  # a small positive code: its neighbors are those next to it
    steps = [0, 0, 1, 2, 3, 4]
    got = np.array([base + step for step in steps], f"u{width}").tobytes()
    want = np.array([base] * len(steps), f"u{width}").tobytes()
    assert ulp_histogram(OutputPair("y", Tensor(dtype, (6,), got), Tensor(dtype, (6,), want))) == (
        2,
        1,
        2,
        1,
        0,
    )


def test_the_histogram_crosses_zero() -> None:
    tiny = float(np.float32(1e-45))
    assert ulp_histogram(pair([tiny, -0.0], [-tiny, 0.0])) == (1, 0, 1, 0)


def test_the_histogram_reaches_from_end_to_end() -> None:
    far = ulp_histogram(pair([1.7e308], [-1.7e308], "float64"))
    assert (sum(far), far[-2:], len(far)) == (1, (1, 0), 66)


def test_odd_numbers_have_a_bin_of_their_own() -> None:
    assert ulp_histogram(pair([NAN, INF, INF, NAN, 1], [NAN, INF, -INF, 0, 1])) == (3, 2)
    assert ulp_histogram(pair([INF], [3e38])) == (1,)


def test_complex_numbers_count_by_their_worse_part() -> None:
    up = np.nextafter(np.float32(1), np.float32(2))
    assert ulp_histogram(pair([1 + 1j, up + 1j, 1 + 1j], [1 + 1j, 1 + 1j, 1 - 1j], "complex64"))[:2] == (1, 1)


def test_what_is_no_float_has_no_histogram() -> None:
    assert ulp_histogram(pair([1], [2], "int32")) == ()
    [found] = compare((("y", Tensor.of(np.array(["a"]))),), (("y", Tensor.of(np.array(["b"]))),))
    assert (found.ulps, found.passes_at) == ((), None)


@given(numeric_tensors(), st.data())
def test_the_histogram_counts_every_element_once(want: Tensor, data: st.DataObject) -> None:
    got = Tensor(
        want.dtype, want.shape, data.draw(st.binary(min_size=len(want.data), max_size=len(want.data)))
    )
    counts = ulp_histogram(OutputPair("y", got, want))
    assert sum(counts) == (int(np.prod(want.shape, dtype=int)) if is_float(want.dtype) else 0)


numbers = st.floats(-1e6, 1e6, width=32)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_the_smallest_tolerance_is_the_smallest(pairs: list[tuple[float, float]]) -> None:
    """As both rtol and atol it lets the output pass, and anything less does not."""
    got, want = (tensor(side, "float64") for side in zip(*pairs, strict=True))
    least = passes_at(OutputPair("y", got, want))
    assert least is not None
    assume(least > 1e-6)  # above the default's own tolerance, which is never undercut

    def passes(bound: float) -> bool:
        return not compare((("y", want),), (("y", got),), tolerance=Tolerance(bound, bound))

    assert passes(least)
    assert not passes(least * (1 - 1e-9))


@pytest.mark.parametrize(("got", "want"), [([NAN], [1.0]), ([1.0], [INF]), ([INF], [-INF])])
def test_no_tolerance_lets_odd_numbers_pass(got: list[float], want: list[float]) -> None:
    assert passes_at(pair(got, want)) is None


def test_odd_numbers_on_both_sides_need_none() -> None:
    assert passes_at(pair([NAN, INF, 3], [NAN, INF, 1])) == pytest.approx(1.0)
    assert passes_at(pair([True], [False], "bool")) is None


@pytest.mark.parametrize("dtype", sorted(ROUNDING))
def test_one_rounding_is_half_a_step_at_one(dtype: str) -> None:
    rounding, least = ROUNDING[dtype]
    part = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    info = ml_dtypes.finfo(part if part != "bfloat16" else ml_dtypes.bfloat16)  # type: ignore[no-untyped-call]
    assert rounding == float(info.eps) / 2
    assert least == float(info.smallest_subnormal)


def test_the_evidence_comes_with_the_mismatch() -> None:
    [found] = compare((("y", tensor([1, 2, 4], "float32")),), (("y", tensor([1, 2.5, 4], "float32")),))
    assert sum(found.ulps) == 3
    assert found.ulps[0] == 2
    assert found.passes_at == pytest.approx(0.5 / 3)
